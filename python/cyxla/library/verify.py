# SPDX-License-Identifier: Apache-2.0
"""Compares a function with its program: the inputs to try, and equality of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from cyxla.program.signature import ProgramArray

Array: TypeAlias = npt.NDArray[Any]

NUM_TRIALS: Final = 256
# Of these many trials in a row the last has special numbers, unless a loop may run forever on them.
_PERIOD: Final = 4
_SCALES: Final = (1.0, 1e-3, 30.0, 1e6, 1e-12)
_SPECIAL_SHARE: Final = 0.3


def trial_inputs(inputs: Sequence[ProgramArray], *, has_specials: bool) -> Iterator[list[Array]]:
    """Yield the inputs of each trial, the same in every process.

    Numbers of several scales, and in every fourth trial also zeros, infinities, NaN, the largest
    and the smallest numbers, subnormal ones included, unless `has_specials` is false.
    """
    rng = np.random.default_rng(20_26)
    for trial in range(NUM_TRIALS):
        is_special = has_specials and trial % _PERIOD == _PERIOD - 1
        yield [_values(rng, array, trial, is_special=is_special) for array in inputs]


def _values(
    rng: np.random.Generator, array: ProgramArray, trial: int, *, is_special: bool
) -> Array:
    dtype, shape = array.dtype, array.shape
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return _integers(rng, dtype, shape, is_special=is_special)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        pairs = _numbers(rng, part, (*shape, 2), trial, is_special=is_special)
        return pairs.view(dtype).reshape(shape)
    return _numbers(rng, dtype, shape, trial, is_special=is_special)


def _numbers(
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    trial: int,
    *,
    is_special: bool,
) -> Array:
    scale = _SCALES[trial // _PERIOD % len(_SCALES)]
    numbers = rng.standard_normal(shape) * scale
    if trial % _PERIOD == 1:  # where logarithms and roots are defined
        numbers = np.abs(numbers)
    elif trial % _PERIOD == 2:  # equal numbers, integers among them
        numbers = np.rint(numbers)
    with np.errstate(over="ignore"):
        result = np.asarray(numbers).astype(dtype)
    if is_special:
        chosen = rng.random(shape) < _SPECIAL_SHARE
        result = np.where(chosen, rng.choice(_specials(dtype), shape), result).astype(dtype)
    return result


def _specials(dtype: np.dtype[Any]) -> Array:
    import ml_dtypes

    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    smallest = np.asarray(limits.smallest_normal, dtype)
    numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, limits.max, -limits.max]
    return np.array([*numbers, smallest, -smallest, smallest / 4, -smallest / 4]).astype(dtype)


def _integers(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], *, is_special: bool
) -> Array:
    limits = np.iinfo(dtype)
    if is_special:
        return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    return rng.integers(max(limits.min, -9), 10, shape).astype(dtype)


def difference(wanted: Array, found: Array) -> str:
    """Say where two arrays of one type differ, empty if they do not.

    Numbers are equal if they have the same bits. Any NaN equals any NaN: which operand's payload a
    sum takes over is up to the code generator.
    """
    wanted, found = np.atleast_1d(wanted), np.atleast_1d(found)
    if wanted.dtype.kind == "c":
        part = np.dtype(f"f{wanted.dtype.itemsize // 2}")
        wanted, found = wanted.view(part), found.view(part)
    bits = np.dtype(f"u{wanted.dtype.itemsize}")
    differs = wanted.view(bits) != found.view(bits)
    if wanted.dtype.kind not in "biu":
        differs &= ~(np.isnan(wanted) & np.isnan(found))
    if not differs.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    return (
        f"{np.count_nonzero(differs)} of {differs.size} elements differ, the first at"
        f" {list(place)}: {found[place]!r} instead of {wanted[place]!r}"
    )


def first_difference(
    run: Callable[[Sequence[Array]], Sequence[Array]],
    outputs: Sequence[ProgramArray],
    inputs: Sequence[Sequence[Array]],
    found: Sequence[Sequence[bytes] | None],
) -> str:
    """Run a program on the inputs of each trial; say where its results first differ from `found`.

    Trials without results are left out: a loop did not end there.
    """
    for trial, (arrays, results) in enumerate(zip(inputs, found, strict=True)):
        if results is None:
            continue
        for output, wanted, data in zip(outputs, run(arrays), results, strict=True):
            array = np.frombuffer(data, output.dtype).reshape(output.shape)
            if text := difference(np.ascontiguousarray(wanted).reshape(output.shape), array):
                return f"output {output.name!r} in trial {trial}: {text}"
    return ""
