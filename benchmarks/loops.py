# SPDX-License-Identifier: Apache-2.0
"""Loops that time many calls, from Python and from C."""

from __future__ import annotations

import ctypes
import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from native_build import ROOT, load_library
from tasks import Array


class Loop(Protocol):
    """A rival prepared for one task."""

    def seconds(self, calls: int) -> float:
        """Return the seconds that so many calls take together. Raises CallError."""
        ...

    def outputs(self) -> Sequence[Array]:
        """The results of the last call."""
        ...


class CallError(Exception):
    """A call of a rival failed."""


class PythonLoop:
    """Calls a function without arguments from Python; it returns the outputs as NumPy arrays."""

    def __init__(self, function: Callable[[], Sequence[Array]]) -> None:
        self._function = function
        self._outputs: Sequence[Array] = ()

    def seconds(self, calls: int) -> float:
        """As Loop.seconds; the loop itself costs about 15 ns a call."""
        function = self._function
        result: Sequence[Array] = ()
        start = time.perf_counter()
        for _ in itertools.repeat(None, calls):
            result = function()
        elapsed = time.perf_counter() - start
        self._outputs = result
        return elapsed

    def outputs(self) -> Sequence[Array]:
        """As Loop.outputs."""
        return self._outputs


@functools.cache
def _driver() -> ctypes.CDLL:
    driver = load_library(ROOT / "native" / "driver.c")
    address, count = ctypes.c_void_p, ctypes.c_size_t
    driver.drive.argtypes = [address, address, count]
    driver.drive.restype = ctypes.c_double
    driver.drive_each.argtypes = [address, address, count, address]
    driver.drive_each.restype = count
    driver.drive_threads.argtypes = [address, address, count, count]
    driver.drive_threads.restype = ctypes.c_double
    return driver


class NativeLoop:
    """Calls `int step(void* state)` from C.

    Args:
        step: address of the step function, which returns 0 unless it failed.
        state: address of the argument of `step`.
        outputs: the arrays it writes to.
        keep: objects that must live as long as the loop.
        refresh: called, untimed, before each batch of calls to update copies of the inputs.
        reason: returns why a call failed.
    """

    def __init__(
        self,
        step: int,
        state: int,
        outputs: Sequence[Array],
        *,
        keep: Any = None,
        refresh: Callable[[], None] | None = None,
        reason: Callable[[], str] | None = None,
    ) -> None:
        self.step = step
        self.state = state
        self._outputs = outputs
        self._keep = keep
        self._refresh = refresh
        self._reason = reason

    def seconds(self, calls: int) -> float:
        """As Loop.seconds."""
        if self._refresh is not None:
            self._refresh()
        elapsed: float = _driver().drive(self.step, self.state, calls)
        if elapsed < 0:
            raise CallError(self.reason())
        return elapsed

    def time_each(self, nanoseconds: Array) -> None:
        """Fill an array of uint32 with the times of single calls, with 20 to 40 ns for the clock.

        Write to the array before, to avoid page faults in the loop.
        """
        calls = nanoseconds.size
        if _driver().drive_each(self.step, self.state, calls, nanoseconds.ctypes.data) != calls:
            raise CallError(self.reason())

    def outputs(self) -> Sequence[Array]:
        """As Loop.outputs."""
        return self._outputs

    def reason(self) -> str:
        """Why the last call failed."""
        return "the step function failed" if self._reason is None else self._reason()


def seconds_on_threads(loops: Sequence[NativeLoop], calls: int) -> float:
    """Wall-clock time of `calls` calls of each loop on a thread of its own. Raises CallError."""
    states = (ctypes.c_void_p * len(loops))(*[loop.state for loop in loops])
    elapsed: float = _driver().drive_threads(loops[0].step, states, len(loops), calls)
    if elapsed < 0:
        raise CallError("a step function failed on a thread")
    return elapsed


def pointers(arrays: Sequence[Array]) -> Any:
    """A C array with the addresses of NumPy arrays."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])
