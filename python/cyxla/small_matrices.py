# SPDX-License-Identifier: Apache-2.0
"""Programs of small matrices, compiled a second time so that their products become kernels.

XLA gives matrix products to libraries that gain from large matrices. For small ones the call of the
library takes longer than the product, and only the plugin can make it. Compiled with other options
the products are kernels, and the program may be called directly; then that form is kept. Where it
may not the gain is a few percent at most, which is not worth results that hang on a measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cyxla.compile_settings import Settings
from cyxla.errors import Error
from cyxla.memory import aligned_empty
from cyxla.program import Program

if TYPE_CHECKING:
    from cyxla._runtime import BoundCall, Executable
    from cyxla.compilation import CompileStatistics

    Compiled: TypeAlias = tuple[Executable, CompileStatistics]

__all__ = ["REASON", "faster_of_both"]

REASON: Final = "compiled a second time, with its small matrix products as kernels"
"""`Executable.route_reason` of a program for which the second form was kept."""

# What a call of the plugin's libraries is called in the reason why a program is not direct.
_LIBRARY_STEPS: Final = ("a matrix product", "a YNNPACK fusion", "an XNNPACK fusion")
# All arrays of a program together; with more, the libraries are faster.
_MAX_BYTES: Final = 256 * 1024
# Relative to the largest value of an output: sums in another order.
_TOLERANCE: Final = {"f": 1e-5, "d": 1e-10, "F": 1e-5, "D": 1e-10, "e": 1e-2}
_ROUNDS: Final = 7
_ROUND_SECONDS: Final = 2e-4
# Only a clear gain is worth other roundings than the plugin's default.
_WORTHWHILE: Final = 0.9


def faster_of_both(
    program: Program,
    settings: Settings,
    compiled: Compiled,
    compile_with: Callable[[Settings], Compiled],
) -> Compiled:
    """The program as compiled, or compiled again if that can be called directly and is faster.

    Both forms must agree within rounding. `seconds` of the statistics is the time of both.
    """
    second = settings.for_small_matrices()
    if second is None or not _is_candidate(program, settings, compiled[0]):
        return compiled
    second = second._replace(route=second.route._replace(route="auto", reason=REASON))
    try:
        again = compile_with(second)
        statistics = again[1]._replace(
            seconds=compiled[1].seconds + again[1].seconds,
            from_cache=compiled[1].from_cache and again[1].from_cache,
        )
        if (
            again[0].route == "direct"
            and _agree(program, compiled[0], again[0])
            and _is_faster(program, again[0], compiled[0])
        ):
            return again[0], statistics
    except Error:  # whatever the second form cannot do, the first one can
        pass
    return compiled


def _is_candidate(program: Program, settings: Settings, executable: Executable) -> bool:
    arrays = (*program.inputs, *program.outputs)
    return (
        not settings.exact
        and settings.route.route != "pjrt"
        and executable.route == "pjrt"
        and any(step in executable.route_reason for step in _LIBRARY_STEPS)
        and sum(array.size_bytes for array in arrays) <= _MAX_BYTES
        # Inputs that nobody chose may keep a loop going for ever.
        and "stablehlo.while" not in program.text
        and not program.needs_python
    )


def _arrays(program: Program, seed: int) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    arrays = []
    for declared in program.inputs:
        array = aligned_empty(declared.shape, declared.dtype)
        if declared.dtype.kind in "iub":
            array[...] = generator.integers(0, 2, declared.shape)
        else:
            array[...] = generator.normal(size=declared.shape).astype(np.float64)
        arrays.append(array)
    return arrays


def _agree(program: Program, first: Executable, second: Executable) -> bool:
    for seed in range(3):
        arrays = _arrays(program, seed)
        with np.errstate(all="ignore"):
            for left, right in zip(first.run(arrays), second.run(arrays), strict=True):
                if not _is_close(left, right):
                    return False
    return True


def _is_close(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    tolerance = _TOLERANCE.get(left.dtype.char)
    if tolerance is None:
        return left.tobytes() == right.tobytes()
    finite = np.abs(left[np.isfinite(left)])
    scale = float(finite.max(initial=0))
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _is_faster(program: Program, candidate: Executable, other: Executable) -> bool:
    arrays = _arrays(program, 0)
    calls = [executable.bind(arrays) for executable in (candidate, other)]
    counts = [_calls_per_round(call) for call in calls]
    shortest = [float("inf")] * 2
    for _ in range(_ROUNDS):
        for i, call in enumerate(calls):
            shortest[i] = min(shortest[i], _seconds(call, counts[i]))
    return shortest[0] < _WORTHWHILE * shortest[1]


def _calls_per_round(call: BoundCall) -> int:
    call()
    return max(1, int(_ROUND_SECONDS / _seconds(call, 1)))


def _seconds(call: BoundCall, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
