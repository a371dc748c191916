# SPDX-License-Identifier: Apache-2.0
"""Input values of every sort and dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

# The seeds of each sort.
SORTS = {
    "numbers": (0, 1, 2),
    "positive numbers": (3,),
    "zeros": (4,),
    "special numbers": (5, 6, 7, 8, 9),
    "subnormal numbers": (10, 11, 12),
}


def values(sort: str, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Values of a sort; integers are small, to be valid indices and trip counts."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return values(sort, rng, (*shape, 2), part).view(dtype)[..., 0]
    if dtype.kind in "biu":
        return _integers(sort, rng, shape, dtype)
    if sort == "zeros":
        return np.copysign(np.zeros(shape), rng.normal(size=shape)).astype(dtype)
    ordinary = rng.normal(size=shape)
    if sort == "positive numbers":
        ordinary = np.abs(ordinary)
    if sort in ("numbers", "positive numbers"):
        return ordinary.astype(dtype)
    extreme = (_special if sort == "special numbers" else _subnormal)(rng, shape, dtype)
    return np.where(rng.integers(0, 3, shape) > 0, extreme, ordinary.astype(dtype))


def _integers(
    sort: str, rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    if sort == "zeros":
        return np.zeros(shape, dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    low = -2 if dtype.kind == "i" and sort != "positive numbers" else 0
    return rng.integers(low, 4, shape).astype(dtype)


def _special(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    limits = ml_dtypes.finfo(dtype)
    tiny, huge, epsilon = limits.smallest_normal, limits.max, limits.eps
    positive = np.array([0, np.inf, np.nan, huge, tiny, epsilon, 1, 4], dtype)
    return rng.choice(np.concatenate([positive, -positive]), shape)


def _subnormal(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    bits = np.dtype(f"u{dtype.itemsize}")
    mantissa = rng.integers(1, 1 << ml_dtypes.finfo(dtype).nmant, shape, np.uint64)
    sign = rng.integers(0, 2, shape).astype(np.uint64) << np.uint64(8 * dtype.itemsize - 1)
    return np.asarray(mantissa | sign).astype(bits).view(dtype)
