# SPDX-License-Identifier: Apache-2.0
"""The inputs that a function is tried on, and what counts as equal."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cyxla.dtypes import ArrayType, ElementType
from cyxla.library.verify import NUM_TRIALS, difference, first_difference, trial_inputs
from cyxla.program.signature import ProgramArray


def array(element_type: ElementType, *shape: int) -> ProgramArray:
    return ProgramArray.of("x", ArrayType(element_type, shape))


@pytest.mark.parametrize(
    "element_type",
    [ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64, ElementType.C64],
)
def test_numbers_of_every_kind_are_tried(element_type: ElementType) -> None:
    inputs = [each for (each,) in trial_inputs([array(element_type, 40)], has_specials=True)]
    assert len(inputs) == NUM_TRIALS == 256
    numbers = np.concatenate(inputs)
    if numbers.dtype.kind == "c":
        numbers = numbers.real
    limits = ml_dtypes.finfo(numbers.dtype)
    assert np.isnan(numbers).any()
    assert (numbers == np.inf).any()
    assert (numbers == -np.inf).any()
    assert (numbers == limits.max).any()
    assert (numbers[numbers == 0] * -1 == 0).any()
    assert ((numbers != 0) & (np.abs(numbers) < limits.smallest_normal)).any()
    plain = [each for (each,) in trial_inputs([array(element_type, 40)], has_specials=False)]
    assert np.isfinite(np.concatenate(plain).astype(np.complex128)[:400]).all()


def test_integers_in_range_and_out_of_it() -> None:
    numbers = np.concatenate(
        [each for (each,) in trial_inputs([array(ElementType.S8, 9)], has_specials=True)]
    )
    assert {-128, -1, 0, 1, 127} <= set(numbers.tolist())
    flags = np.concatenate(
        [each for (each,) in trial_inputs([array(ElementType.PRED, 9)], has_specials=True)]
    )
    assert flags.dtype == bool
    assert set(flags.tolist()) == {False, True}


def test_the_inputs_are_the_same_each_time() -> None:
    first, second = (
        b"".join(
            each.tobytes()
            for (each,) in trial_inputs([array(ElementType.F32, 3)], has_specials=True)
        )
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("wanted", "found", "text"),
    [
        ([1.0, 2.0], [1.0, 2.0], ""),
        ([np.nan], [-np.nan], ""),
        ([0.0], [-0.0], "1 of 1 elements differ"),
        (
            [1.0, 2.0],
            [1.0, np.nextafter(2.0, 3.0)],
            r"the first at [1]: np.float64(2.0000000000000004)",
        ),
        ([np.inf], [np.nan], "instead of np.float64(inf)"),
    ],
)
def test_numbers_are_equal_by_their_bits(
    wanted: list[float], found: list[float], text: str
) -> None:
    result = difference(np.array(wanted), np.array(found))
    assert text in result
    assert bool(result) == bool(text)


def test_complex_numbers_and_scalars() -> None:
    assert difference(np.array(1 + 2j), np.array(1 + 2j)) == ""
    assert "1 of 2 elements differ" in difference(np.array(1 + 2j), np.array(1 + 3j))


def test_a_trial_without_results_is_left_out() -> None:
    outputs = [array(ElementType.F64, 2)]
    inputs = [[np.array([1.0, 2.0])], [np.array([3.0, 4.0])]]

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [2 * arrays[0]]

    right = [np.array([2.0, 4.0]).tobytes()]
    assert first_difference(run, outputs, inputs, [right, None]) == ""
    assert "in trial 1" in first_difference(run, outputs, inputs, [right, right])
