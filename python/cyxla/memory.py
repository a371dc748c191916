# SPDX-License-Identifier: Apache-2.0
"""Allocates arrays at aligned addresses, which programs read in place."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from cyxla.dtypes import AnyArray

__all__ = ["aligned_empty"]

# CYXLA_ALIGNMENT of cyxla.h, in bytes.
_ALIGNMENT: Final = 64


def aligned_empty(
    shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64
) -> npt.NDArray[Any]:
    """Return a new, uninitialized, C-contiguous array at a 64-byte-aligned address.

    `Executable.run` and `bind` read aligned inputs in place and copy others. NumPy's arrays are
    seldom aligned. Use this for large inputs that are used many times.

    Args:
        shape: the dimensions.
        dtype: any dtype without Python objects.

    Raises:
        ValueError: a dimension is negative, or the array exceeds the address space.
    """
    dtype = np.dtype(dtype)
    size_bytes = np.broadcast_to(np.empty((), dtype), shape).nbytes  # checks the shape
    memory = np.empty(size_bytes + _ALIGNMENT, np.uint8)
    offset = -memory.ctypes.data % _ALIGNMENT
    array: AnyArray = memory[offset : offset + size_bytes].view(dtype)
    return array.reshape(shape)
