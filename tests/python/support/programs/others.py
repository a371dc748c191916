# SPDX-License-Identifier: Apache-2.0
"""Programs that are not about one floating-point dtype."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from support.programs.entry import Maker, Program, both, for_matrix, matrix, vector
from support.programs.functions import integers, key

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def random_numbers(bits: Any) -> Any:
    keys = jax.random.split(key(bits), 4)
    return (
        [jax.random.key_data(keys), jax.random.bits(keys[0], (9,))],
        jax.random.permutation(keys[1], 10),
        [jax.random.uniform(keys[0], (5,)), jax.random.normal(keys[1], (5,))],
        [jax.random.randint(keys[2], (5,), 0, 100), jax.random.gamma(keys[2], 2.0, (3,))],
        [
            jax.random.categorical(keys[3], jnp.zeros(4), shape=(6,)),
            jax.random.poisson(keys[3], 4.0, (5,)),
        ],
        jax.random.choice(keys[0], jnp.arange(10.0), (4,), replace=False),
    )


def other_generators(bits: Any) -> Any:
    return [
        jax.random.bits(jax.random.wrap_key_data(data, impl=name), (6,))
        for name, data in (("rbg", bits), ("unsafe_rbg", bits), ("threefry2x32", bits[:2]))
    ]


def half_precision(a: Any, x: Any) -> Any:
    return a @ x, jnp.tanh(x), jax.grad(lambda v: jnp.sin(a @ v).sum())(x), jnp.sort(x), x.sum()


def complex_arithmetic(x: Any, y: Any) -> Any:
    return (
        [x * y, x / y, jnp.abs(x), jnp.angle(y), x.conj(), x.real + y.imag],
        [jnp.exp(x), jnp.log(y), jnp.sqrt(x), jnp.sin(y), jnp.tanh(x), x**2, x.sum(), y.prod()],
        [jnp.fft.fft(x), jnp.fft.ifft(y), jnp.outer(x, y) @ y],
    )


def small_floats(x: Any) -> Any:
    return [x.astype(t).astype("float32") for t in ("float8_e4m3fn", "float8_e5m2", "float16")]


def parts(rng: np.random.Generator, dtype: str) -> list[Any]:
    """Two complex vectors away from zero."""
    return [(rng.uniform(0.5, 1, 6) + 1j * rng.uniform(0.5, 1, 6)).astype(dtype) for _ in range(2)]


def words(count: int) -> Maker:
    return lambda rng: [rng.integers(0, 2**32, count, np.uint32)]


def limits(dtype: str) -> Maker:
    info = np.iinfo(dtype)
    return lambda rng: [
        np.array([info.min, info.max, 0, 1, 3, 100], dtype),
        np.array([1, 2, 3, 5, 7, 11], dtype),
    ]


OTHERS: dict[str, Program] = {
    "random numbers": for_matrix(random_numbers, words(2)),
    "other random generators": for_matrix(other_generators, words(4)),
    **{
        f"integers of {dtype}": for_matrix(integers(dtype), limits(dtype), "direct")
        if "int8" in dtype
        else Program(integers(dtype), limits(dtype), frozenset(("matrix", "direct")))
        for dtype in INTEGERS
    },
    **{
        f"half precision, {dtype}": for_matrix(
            half_precision,
            lambda rng, dtype=dtype: [a.astype(dtype) for a in both(matrix(8, 8), vector(8))(rng)],
            "jit",
        )
        for dtype in ("float16", "bfloat16")
    },
    **{
        f"complex arithmetic, {dtype}": for_matrix(
            complex_arithmetic, lambda rng, dtype=dtype: parts(rng, dtype)
        )
        for dtype in ("complex64", "complex128")
    },
    "small floats": for_matrix(small_floats, lambda rng: [rng.normal(size=9).astype("f4")]),
    "bits": for_matrix(
        lambda x: (lax.bitcast_convert_type(x, np.uint32), lax.reduce_precision(x, 5, 7)),
        lambda rng: [rng.normal(size=9).astype("f4")],
    ),
    "no inputs": for_matrix(lambda: (jnp.arange(4.0), jnp.ones((2, 3))), lambda rng: [], "jit"),
}
