# SPDX-License-Identifier: Apache-2.0
"""A program's inputs and outputs, and its name as an identifier."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from cyxla.dtypes import ArrayType, ElementType

__all__ = ["ProgramArray", "identifier"]


class ProgramArray(NamedTuple):
    """One input or output of a program.

    Attributes:
        name: path of the leaf: the parameter's name and JAX's key path into its container, such as
            "x", "d['a']" or "params.w[0]"; for outputs "result", "result[0]", "result['loss']".
        dtype: NumPy dtype of the elements.
        element_type: PJRT's element type, the value of `Input.element_type`.
        shape: dimensions; the memory is dense and row-major.
        size_bytes: size of the array in bytes.
    """

    name: str
    dtype: np.dtype[Any]
    element_type: ElementType
    shape: tuple[int, ...]
    size_bytes: int

    @classmethod
    def of(cls, name: str, array_type: ArrayType) -> ProgramArray:
        """Return the array called `name` with this element type and shape."""
        return cls(
            name,
            array_type.dtype,
            array_type.element_type,
            array_type.shape,
            array_type.size_bytes,
        )

    @property
    def array_type(self) -> ArrayType:
        """The element type and shape."""
        return ArrayType(self.element_type, self.shape)


def identifier(name: str) -> str:
    """Return the name as a valid C identifier."""
    safe = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return f"_{safe}" if safe[:1].isdigit() else safe or "program"
