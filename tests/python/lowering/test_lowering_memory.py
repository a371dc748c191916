# SPDX-License-Identifier: Apache-2.0
"""Repeated lowering, for example once for each size, does not leak."""

from __future__ import annotations

import gc

import jax
import jax.numpy as jnp
import numpy as np

import cyxla


def _objects_after_lowering(count: int) -> int:
    for _ in range(count):
        array = np.ones(1000, np.float32)
        cyxla.lower(lambda x, a=array: x + a, [jax.ShapeDtypeStruct((1000,), jnp.float32)])
    gc.collect()
    return len(gc.get_objects())


def test_lowering_leaves_no_objects_behind() -> None:
    before = _objects_after_lowering(5)
    assert _objects_after_lowering(20) - before < 20 * 5
