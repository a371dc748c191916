# SPDX-License-Identifier: Apache-2.0
"""JAX itself: `jax.jit` from NumPy to NumPy, compiled ahead of time, and on the device alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from case import Case
from loops import PythonLoop
from rivals import Rival
from tasks import Array


def _to_numpy(compiled: Callable[..., Sequence[Any]], case: Case) -> PythonLoop:
    arrays, asarray = case.inputs, np.asarray
    return PythonLoop(lambda: [asarray(result) for result in compiled(*arrays)])


def _jit(case: Case) -> PythonLoop:
    return _to_numpy(jax.jit(case.task.function), case)


def _ahead_of_time(case: Case) -> PythonLoop:
    return _to_numpy(jax.jit(case.task.function).lower(*case.shapes).compile(), case)


class _DeviceLoop(PythonLoop):
    """Inputs and results stay on the device, as for a caller that uses only JAX."""

    def __init__(self, case: Case) -> None:
        compiled, block = jax.jit(case.task.function), jax.block_until_ready
        self._case = case
        self._arrays: list[Any] = []
        super().__init__(lambda: block(compiled(*self._arrays)))

    def seconds(self, calls: int) -> float:
        self._arrays = [jax.device_put(array.copy()) for array in self._case.inputs]
        jax.block_until_ready(self._arrays)
        return super().seconds(calls)

    def outputs(self) -> list[Array]:
        return [np.asarray(result) for result in super().outputs()]


RIVALS = (
    Rival("jax-jit", "jax.jit, NumPy to NumPy", "Python", _jit),
    Rival("jax-aot", "jax.jit ahead of time", "Python", _ahead_of_time),
    Rival("jax-device", "jax.jit, device to device", "Python", _DeviceLoop),
)
