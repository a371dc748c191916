# SPDX-License-Identifier: Apache-2.0
"""`Executable.warm_up` does the work of the first call in advance."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import cyxla

S = jax.ShapeDtypeStruct


def executable(route: str = "pjrt") -> cyxla.Executable:
    program = cyxla.lower(lambda x, n: (x * 2, x[0] + n), [S((3,), "f4"), S((), "i4")])
    return cyxla.compile_program(program, route=route)[0]


@pytest.mark.parametrize("route", ["pjrt", "direct"])
def test_it_executes_and_changes_nothing(route: str) -> None:
    warm = executable(route)
    errors = cyxla.error_info().count
    assert warm.warm_up() is None  # type: ignore[func-returns-value]
    x = np.array([1, 2, 3], "f4")
    assert warm.warm_up([x, 4], calls=2) is None  # type: ignore[func-returns-value]
    assert x.tolist() == [1, 2, 3]
    first, second = warm.run([x, 4])
    assert (first.tolist(), float(second)) == ([2, 4, 6], 5)
    assert cyxla.error_info().count == errors


def test_it_executes_as_often_as_asked() -> None:
    class Counting:
        def __init__(self) -> None:
            self.count = 0

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            self.count += 1
            return np.zeros(3, "f4")

    counting = Counting()
    executable().warm_up([counting, 1], calls=5)
    assert counting.count == 5


@pytest.mark.parametrize("calls", [0, -1, True, 1.5, "3", None])
def test_other_numbers_of_calls(calls: Any) -> None:
    with pytest.raises(cyxla.ArgumentError) as caught:
        executable().warm_up(calls=calls)
    assert str(caught.value) == f"calls must be an int of at least 1, got {calls!r}"


def test_wrong_arrays() -> None:
    with pytest.raises(cyxla.ArgumentError, match="expected 2 arguments, got 1"):
        executable().warm_up([1])
