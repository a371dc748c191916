# SPDX-License-Identifier: Apache-2.0
"""`aligned_empty`: memory that programs read in place."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import cyxla


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.complex128, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), 5, (3, 4), (0, 2), (1, 1, 7)])
def test_aligned_empty_is_aligned_contiguous_and_writable(
    shape: int | tuple[int, ...], dtype: type
) -> None:
    for _ in range(8):  # malloc's addresses vary
        array = cyxla.aligned_empty(shape, dtype)
        assert array.shape == np.empty(shape).shape
        assert array.dtype == np.dtype(dtype)
        assert array.ctypes.data % 64 == 0 or array.size == 0
        assert array.flags.c_contiguous
        assert array.flags.writeable


def test_aligned_empty_takes_doubles_without_a_dtype() -> None:
    assert cyxla.aligned_empty(3).dtype == np.float64
