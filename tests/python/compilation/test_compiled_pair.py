# SPDX-License-Identifier: Apache-2.0
"""The pair that `compile_program` returns, and the errors for using it as an Executable."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import cyxla


def program(size: int = 3) -> cyxla.Program:
    return cyxla.lower(lambda x: x * 2, [jax.ShapeDtypeStruct((size,), jnp.float32)], name="twice")


_START = r"compile_program returns the pair \(executable, statistics\), which "
_REMEDY = (
    r"; write executable, statistics = cyxla\.compile_program\(\.\.\.\), or use \.executable of the"
    " pair"
)


def test_the_pair_used_as_an_executable_names_the_remedy() -> None:
    pair: Any = cyxla.compile_program(program())
    with pytest.raises(AttributeError, match=f"^{_START}has no 'run'{_REMEDY}$"):
        pair.run([[1, 2, 3]])
    with pytest.raises(TypeError, match=f"^{_START}cannot be called{_REMEDY}, and call"):
        pair([1, 2, 3])
    (from_batch,) = cyxla.compile_programs([program()])
    with pytest.raises(AttributeError, match="has no 'bind'"):
        from_batch.bind([])  # type: ignore[attr-defined]


def test_the_pair_is_a_tuple_of_two() -> None:
    pair = cyxla.compile_program(program())
    executable, statistics = pair
    assert isinstance(pair, tuple)
    assert len(pair) == 2
    assert (pair.executable, pair.statistics) == (executable, statistics)
    assert executable.run([[1, 2, 3]])[0].tolist() == [2, 4, 6]
    for name in ("run", "__deepcopy__", "__array__", "__len_hint__"):
        assert not hasattr(pair, name)
    assert copy.copy(pair) == pair
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        copy.deepcopy(pair)


def test_the_executable_has_the_statistics(tmp_path: Path) -> None:
    fresh = cyxla.compile_program(program(), cache=tmp_path)
    hit = cyxla.compile_program(program(), cache=tmp_path)
    (batch,) = cyxla.compile_programs([program()])
    square = jax.ShapeDtypeStruct((8, 8), jnp.float64)
    second = cyxla.compile_program(cyxla.lower(lambda a, b: a @ b, [square, square]))
    assert [pair[1].from_cache for pair in (fresh, hit, batch)] == [False, True, False]
    assert second[1].second_form_seconds is not None
    for executable, statistics in (fresh, hit, batch, second):
        assert executable.statistics is statistics
