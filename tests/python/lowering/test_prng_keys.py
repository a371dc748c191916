# SPDX-License-Identifier: Apache-2.0
"""Typed PRNG keys as arguments and results: uint32 arrays with one more dimension."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla

S = jax.ShapeDtypeStruct
_WORDS = {"threefry2x32": 2, "rbg": 4, "unsafe_rbg": 4}


def sample(keys: Any, scale: Any) -> Any:
    first = keys["k"][0]
    drawn = scale * jax.random.normal(first, (3,))
    return {"drawn": drawn, "next": jax.random.split(first, 2), "same": keys["k"]}


def equal(result: Any, wanted: Any) -> bool:
    if jnp.issubdtype(wanted.dtype, jax.dtypes.prng_key):
        wanted = jax.random.key_data(wanted)
    return bool(result.dtype == wanted.dtype and np.array_equal(result, np.asarray(wanted)))


@pytest.mark.parametrize("route", ["auto", "pjrt"])
@pytest.mark.parametrize("implementation", _WORDS)
def test_keys_are_words(implementation: str, route: str) -> None:
    words = _WORDS[implementation]
    keys = jax.random.split(jax.random.key(7, impl=implementation), 5)
    scale = np.array(2.0, "f4")
    program = cyxla.lower(sample, [{"k": S(keys.shape, keys.dtype)}, scale], platform="cpu")
    assert [(a.name, a.dtype.name, a.shape) for a in program.inputs] == [
        ("keys['k']", "uint32", (5, words)),
        ("scale", "float32", ()),
    ]
    assert [(a.dtype.name, a.shape) for a in program.outputs] == [
        ("float32", (3,)),
        ("uint32", (2, words)),
        ("uint32", (5, words)),
    ]
    executable, _ = cyxla.compile_program(program, route=route)
    wanted = jax.tree.leaves(jax.jit(sample)({"k": keys}, scale))
    for passed in (keys, jax.random.key_data(keys), np.asarray(jax.random.key_data(keys))):
        results = executable.run([passed, scale])
        assert all(map(equal, results, wanted))


def test_a_key_may_be_given_instead_of_its_type() -> None:
    key = jax.random.key(3)
    program = cyxla.lower(lambda k: jax.random.uniform(k, (4,)), [key], platform="cpu")
    assert program.inputs[0].shape == (2,)
    (result,) = cyxla.compile_program(program)[0].run([key])
    np.testing.assert_array_equal(result, jax.random.uniform(key, (4,)))


def test_keys_of_another_shape_or_implementation_are_refused() -> None:
    key = jax.random.key(3)
    executable, _ = cyxla.compile_program(cyxla.lower(jax.random.bits, [key], platform="cpu"))
    for wrong in (jax.random.split(key, 2), jax.random.key(3, impl="rbg")):
        with pytest.raises(cyxla.ArgumentError, match=r"argument 0 .*uint32 of shape \(2,\), got"):
            executable.run([wrong])
    with pytest.raises(cyxla.ArgumentError, match="expected a C-contiguous array uint32"):
        executable.bind([key])  # type: ignore[list-item]
