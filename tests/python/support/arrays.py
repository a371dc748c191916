# SPDX-License-Identifier: Apache-2.0
"""Programs and arrays for the compiled modules, which take addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import cyxla
from cyxla import dtypes

ALIGNMENT = 64
Array = np.ndarray[Any, Any]


def build(function: Any, *types: tuple[tuple[int, ...], Any], **options: Any) -> cyxla.Executable:
    """Compile a function of arrays of these shapes and dtypes."""
    specs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]
    return cyxla.compile_program(cyxla.lower(function, specs, **options))[0]


def place(values: Array, offset: int = 0) -> Array:
    """Copy an array to an address that is `offset` bytes after a multiple of ALIGNMENT."""
    raw = np.empty(values.nbytes + 2 * ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT + offset
    placed = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    placed[...] = values
    assert placed.nbytes == 0 or placed.ctypes.data % ALIGNMENT == offset
    return placed


def described(arrays: Sequence[Array]) -> list[tuple[int, int, int]]:
    """The arrays as the compiled modules take inputs."""
    return [(a.ctypes.data, int(dtypes.element_type_of(a.dtype)), a.size) for a in arrays]


def addresses(arrays: Sequence[Array | None]) -> list[int]:
    """The arrays as the compiled modules take outputs; None is NULL."""
    return [0 if array is None else array.ctypes.data for array in arrays]


def empty_outputs(executable: cyxla.Executable, offset: int = 0) -> list[Array]:
    """Arrays for the outputs, filled with bytes that no test computes."""
    outputs = []
    for type_ in executable.output_types:
        filler = np.full(type_.size_bytes, 0xA5, np.uint8).view(type_.dtype)
        outputs.append(place(filler.reshape(type_.shape), offset))
    return outputs


def resident_bytes() -> int:
    """The resident bytes of this process, without mapped files."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status", encoding="ascii") as status:
        (line,) = (line for line in status if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024
