# SPDX-License-Identifier: Apache-2.0
"""Lowers programs of the table, and compares results with those of `jax.jit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

import cyxla
from support.programs.entry import Program

# Relative to the largest value of an output, by its dtype; outputs of other dtypes must be equal.
TOLERANCES = {
    **dict.fromkeys(("float32", "complex64"), 1e-5),
    **dict.fromkeys(("float64", "complex128"), 1e-10),
    # Sums may round in another order.
    **{dtype: 4 * float(ml_dtypes.finfo(dtype).eps) for dtype in ("float16", "bfloat16")},
}


class Difference(Exception):
    """Results that are not those of `jax.jit`."""


def arguments_of(name: str, program: Program) -> list[Any]:
    """The arguments of a program, the same each time."""
    return program.arguments(np.random.default_rng(len(name)))


def lowered(program: Program, arguments: Sequence[Any]) -> cyxla.Program:
    """The program for the CPU."""
    specifications = jax.tree.map(
        lambda array: jax.ShapeDtypeStruct(np.shape(array), array.dtype), list(arguments)
    )
    return cyxla.lower(program.function, specifications, platform="cpu")


def reference(program: Program, arguments: Sequence[Any]) -> list[Any]:
    """The results of `jax.jit`, leaf by leaf."""
    leaves = jax.tree.leaves(list(arguments))
    is_wide = any(
        leaf.dtype.name in ("float64", "int64", "uint64", "complex128") for leaf in leaves
    )
    with jax.enable_x64(is_wide):
        results = jax.jit(program.function)(*arguments)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def compare(got: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Raise Difference unless the results agree within the tolerances of their dtypes."""
    if len(got) != len(wanted):
        raise Difference(f"{len(got)} outputs instead of {len(wanted)}")
    for index, (array, right) in enumerate(zip(got, wanted, strict=True)):
        if (array.dtype, array.shape) != (right.dtype, right.shape):
            raise Difference(
                f"output {index} is {array.dtype}{array.shape}, not {right.dtype}{right.shape}"
            )
        allowed = TOLERANCES.get(right.dtype.name)
        if allowed is None:
            if not np.array_equal(array, right):
                count = int((array != right).sum())
                raise Difference(f"output {index} differs in {count} of {right.size}")
            continue
        wide = np.complex128 if right.dtype.kind == "c" else np.float64
        array, right = array.astype(wide), right.astype(wide)
        finite = np.abs(right[np.isfinite(right)])
        scale = float(finite.max(initial=0))
        if not np.allclose(array, right, rtol=allowed, atol=allowed * scale, equal_nan=True):
            worst = float(np.nanmax(np.abs(array - right))) / (scale or 1)
            raise Difference(f"output {index} differs by {worst:.1e} of its largest value")
