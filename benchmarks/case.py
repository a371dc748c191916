# SPDX-License-Identifier: Apache-2.0
"""A task prepared for its rivals: shared inputs, output arrays, and the check against JAX."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import cyxla
import jax
import numpy as np

from tasks import Array, Task, shapes_of

ALIGNMENT = 64


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """An uninitialized array at an address that is a multiple of 64 bytes."""
    size_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(size_bytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    array: Array = memory[start : start + size_bytes].view(dtype).reshape(shape)
    return array


class Case:
    """One task with its inputs. Rivals read `inputs` in place and never write there."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.jitted = jax.jit(task.function)
        made = task.make_inputs(np.random.default_rng(0))
        self.shapes = shapes_of(made)
        self.inputs = [aligned_empty(array.shape, array.dtype) for array in made]
        self.output_shapes = jax.eval_shape(task.function, *self.shapes)
        self.fill(0)

    def fill(self, seed: int) -> None:
        """Write new values into the inputs."""
        made = self.task.make_inputs(np.random.default_rng(seed))
        for array, values in zip(self.inputs, made, strict=True):
            np.copyto(array, values)

    def copy_inputs(self) -> list[Array]:
        """Copies of the inputs, at other addresses."""
        copies = [aligned_empty(array.shape, array.dtype) for array in self.inputs]
        self.refresh(copies)
        return copies

    def refresh(self, copies: Sequence[Array]) -> None:
        """Write the current inputs into copies of them, which may have other dtypes."""
        for copy, array in zip(copies, self.inputs, strict=True):
            np.copyto(copy, array)

    def new_outputs(self) -> list[Array]:
        """Arrays for the outputs, filled with NaN to detect an output that was not written."""
        outputs = [aligned_empty(shape.shape, shape.dtype) for shape in self.output_shapes]
        for output in outputs:
            output.fill(np.nan)
        return outputs

    @functools.cached_property
    def program(self) -> cyxla.Program:
        """The task lowered by cyxla; the rivals that speak PJRT compile the same bytes."""
        return cyxla.lower(self.task.function, self.shapes, name=self.task.name)

    def expected(self) -> list[Array]:
        """JAX's results for the current inputs."""
        return [np.array(result) for result in self.jitted(*self.inputs)]

    def fault(self, outputs: Sequence[Array], expected: Sequence[Array]) -> str | None:
        """A description of what is wrong with a rival's outputs, or None."""
        if len(outputs) != len(expected):
            return f"{len(outputs)} outputs instead of {len(expected)}"
        for index, (got, want) in enumerate(zip(outputs, expected, strict=True)):
            if got.shape != want.shape:
                return f"output {index} has shape {got.shape} instead of {want.shape}"
            allowed = np.abs(want).astype(np.float64) * self.task.tolerance
            allowed += np.max(np.abs(want), initial=0.0) * self.task.zero_tolerance
            error = np.abs(got.astype(np.float64) - want)
            wrong = ~(error <= allowed)  # NaN is wrong too
            if np.any(wrong):
                where = np.unravel_index(np.argmax(wrong), want.shape)
                return (
                    f"output {index}{[int(i) for i in where]} is {got[where]!r} instead of"
                    f" {want[where]!r} ({np.count_nonzero(wrong)} of {want.size} elements differ)"
                )
        return None
