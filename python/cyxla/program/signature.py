# SPDX-License-Identifier: Apache-2.0
"""What a program takes and gives: its arrays, and the name that native code knows it by."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from cyxla.dtypes import ArrayType, ElementType

__all__ = ["ProgramArray", "identifier"]


class ProgramArray(NamedTuple):
    """One input or output of a program, in the position that native code passes it at.

    Attributes:
        name: path of the leaf: the parameter's name and JAX's key path into its container, such as
            "x", "d['a']" or "params.w[0]"; for outputs "result", "result[0]", "result['loss']".
        dtype: NumPy dtype of the elements.
        element_type: the same as PJRT names it, the value of `Input.element_type`.
        shape: dimensions; the memory is dense and row-major.
        size_bytes: bytes of the whole array.
    """

    name: str
    dtype: np.dtype[Any]
    element_type: ElementType
    shape: tuple[int, ...]
    size_bytes: int

    @classmethod
    def of(cls, name: str, array_type: ArrayType) -> ProgramArray:
        """The array called `name` of this element type and shape."""
        return cls(
            name,
            array_type.dtype,
            array_type.element_type,
            array_type.shape,
            array_type.size_bytes,
        )

    @property
    def array_type(self) -> ArrayType:
        """Element type and shape alone."""
        return ArrayType(self.element_type, self.shape)


def identifier(name: str) -> str:
    """The name with everything that C would not take in an identifier replaced."""
    safe = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return f"_{safe}" if safe[:1].isdigit() else safe or "program"
