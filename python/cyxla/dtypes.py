# SPDX-License-Identifier: Apache-2.0
"""PJRT's element types, their NumPy dtypes, and the conversion of arguments to them.

`convert` follows NumPy's same_kind rule (bool < unsigned < signed < float < complex: an array
converts to a type of its own or a later kind), with three additions:

- integers convert to integers only if every value fits;
- bfloat16 and the 8-bit floats of ml_dtypes count as floats;
- Python scalars and lists have no dtype, so their ints also convert to unsigned integers if they
  fit. A Python float never converts to an integer, not even 1.0.

As in NumPy, a finite float that is too large for a narrower float becomes inf (nan if the type has
no inf) with NumPy's RuntimeWarning, and an integer that a float cannot represent is rounded.
"""

from __future__ import annotations

import enum
import math
import sys
from typing import Any, Final, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from cyxla.errors import ArgumentError

__all__ = [
    "AnyArray",
    "ArrayType",
    "ElementType",
    "cast",
    "convert",
    "describe",
    "dtype_of",
    "element_type_of",
    "is_narrowing",
    "is_python_value",
    "read",
]

AnyArray: TypeAlias = npt.NDArray[Any]
AnyDtype: TypeAlias = np.dtype[Any]


class ElementType(enum.IntEnum):
    """Type of an array element; names (without the prefix) and values of `PJRT_Buffer_Type`."""

    INVALID = 0
    PRED = 1
    S8 = 2
    S16 = 3
    S32 = 4
    S64 = 5
    U8 = 6
    U16 = 7
    U32 = 8
    U64 = 9
    F16 = 10
    F32 = 11
    F64 = 12
    BF16 = 13
    C64 = 14
    C128 = 15
    F8E5M2 = 16
    F8E4M3FN = 17
    F8E4M3B11FNUZ = 18
    F8E5M2FNUZ = 19
    F8E4M3FNUZ = 20
    S4 = 21
    U4 = 22
    TOKEN = 23
    S2 = 24
    U2 = 25
    F8E4M3 = 26
    F8E3M4 = 27
    F8E8M0FNU = 28
    F4E2M1FN = 29


# Types whose elements have whole bytes; the others have no agreed layout in host memory.
_DTYPES: Final[dict[ElementType, AnyDtype]] = {
    element_type: np.dtype(scalar)
    for element_type, scalar in {
        ElementType.PRED: np.bool_,
        ElementType.S8: np.int8,
        ElementType.S16: np.int16,
        ElementType.S32: np.int32,
        ElementType.S64: np.int64,
        ElementType.U8: np.uint8,
        ElementType.U16: np.uint16,
        ElementType.U32: np.uint32,
        ElementType.U64: np.uint64,
        ElementType.F16: np.float16,
        ElementType.F32: np.float32,
        ElementType.F64: np.float64,
        ElementType.BF16: ml_dtypes.bfloat16,
        ElementType.C64: np.complex64,
        ElementType.C128: np.complex128,
        ElementType.F8E5M2: ml_dtypes.float8_e5m2,
        ElementType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
        ElementType.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
        ElementType.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
        ElementType.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
        ElementType.F8E4M3: ml_dtypes.float8_e4m3,
        ElementType.F8E3M4: ml_dtypes.float8_e3m4,
        ElementType.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
    }.items()
}
_SUPPORTED: Final = (
    "bool, integers of 8 to 64 bits, float16, float32, float64, complex64, complex128, and bfloat16"
    " and the 8-bit floats of ml_dtypes"
)
_ELEMENT_TYPES: Final = {dtype: element_type for element_type, dtype in _DTYPES.items()}

_KIND_ORDER: Final = "buifc"
_ON_PYTREES: Final = (
    "pass each leaf of a pytree separately: executable.run(jax.tree.leaves(arguments))"
)


def dtype_of(element_type: int) -> AnyDtype:
    """Return the NumPy dtype of an element type.

    Raises ArgumentError for types without one: tokens, and types smaller than a byte.
    """
    try:
        return _DTYPES[ElementType(element_type)]
    except (KeyError, ValueError):
        name = _element_type_name(element_type)
        raise ArgumentError(
            f"element type {name} has no NumPy dtype; {_SUPPORTED} have one"
        ) from None


def element_type_of(dtype: npt.DTypeLike) -> ElementType:
    """Return the element type of a NumPy dtype in either byte order.

    Raises ArgumentError for dtypes without one, such as strings, objects and int4.
    """
    native = np.dtype(dtype).newbyteorder("=")
    try:
        return _ELEMENT_TYPES[native]
    except KeyError:
        raise ArgumentError(
            f"dtype {native.name} has no element type; {_SUPPORTED} have one"
        ) from None


def _element_type_name(element_type: int) -> str:
    try:
        return ElementType(element_type).name
    except ValueError:
        return str(element_type)


class ArrayType(NamedTuple):
    """Element type and shape of one input or output."""

    element_type: ElementType
    shape: tuple[int, ...]

    @property
    def dtype(self) -> AnyDtype:
        """NumPy dtype of the elements."""
        return dtype_of(self.element_type)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Size of the dense array in bytes."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return describe(self.dtype, self.shape)


def convert(value: object, array_type: ArrayType, where: str) -> AnyArray:
    """Return an array of exactly `array_type` with the values of `value`.

    The result is a plain ndarray: C-contiguous, aligned, in native byte order. It shares memory
    with a `value` that meets all this, and is a copy otherwise.

    Args:
        value: an array with any strides and byte order, an object that NumPy can view as one
            (`__array__`, the buffer protocol, DLPack), a Python scalar or a list. Nothing is
            broadcast.
        array_type: the element type and shape of the result.
        where: the value's name in errors, such as "argument 1 ('p')".

    Raises:
        ArgumentError: the shape differs, the same_kind rule forbids the conversion, an integer does
            not fit, or the value is not an array. Names the expected and the given type.
    """
    return cast(read(value, array_type, where), array_type.dtype)


def read(value: object, array_type: ArrayType, where: str) -> AnyArray:
    """Return `value` as an array that `cast` can convert to `array_type`.

    The first half of `convert`, with the same arguments and errors.
    """
    if is_python_value(value):
        source = _array_of_python_values(value, array_type, where)
    else:
        source = _array_of_array_like(value, array_type, where)
    if source.shape != array_type.shape:
        raise _error(where, array_type, source, "the shape must be equal, nothing is broadcast")
    _check_integers_fit(source, array_type, where)
    return source


def is_python_value(value: object) -> bool:
    """Return whether a value is a Python number, list or tuple, which has no dtype."""
    return isinstance(value, bool | int | float | complex | list | tuple) and not isinstance(
        value, np.generic
    )


def is_narrowing(source: AnyDtype, target: AnyDtype) -> bool:
    """Return whether numbers may change: 64-bit numbers that become floats of at most 32 bits."""
    is_wide = source.kind in "iufc" and source.itemsize == (16 if source.kind == "c" else 8)
    largest = {"f": 4, "c": 8}.get(_kind(target), 0)
    return is_wide and target.itemsize <= largest


def _array_of_python_values(value: Any, array_type: ArrayType, where: str) -> AnyArray:
    """Return a Python scalar or list as an array, if its kind converts to the target."""
    target = array_type.dtype
    try:
        source: AnyArray = np.asarray(value)
        if source.size == 0:
            return np.empty(source.shape, target)
        # NumPy reads ints beyond 64 bits as objects, and mixed int64 and uint64 values as floats.
        if source.dtype.kind == "O" or (source.dtype.kind == "f" and _kind(target) in "iu"):
            objects = np.asarray(value, dtype=object)
            if all(isinstance(element, int | np.integer) for element in objects.flat):
                _check_integers_fit(objects, array_type, where)
                return objects.astype(target)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"{where}: expected {array_type}, got {type(value).__name__} that is not an array of"
            f" numbers: {error}; {_ON_PYTREES}"
        ) from error
    _refuse_masks(value, array_type, where)
    python_ints = source.dtype.kind == "i" and _kind(target) == "u"
    if not python_ints and not _same_kind(source.dtype, target):
        reason = _no_numbers(value) if _kind(source.dtype) == "" else _not_implicit(source, target)
        raise _error(where, array_type, source, reason)
    return source


def _array_of_array_like(value: Any, array_type: ArrayType, where: str) -> AnyArray:
    """Return an object with an array interface as an array, if same_kind allows it."""
    target = array_type.dtype
    _refuse_masks(value, array_type, where)
    try:
        value = _key_data(value)
        through_dlpack = hasattr(value, "__dlpack__") and not hasattr(value, "__array__")
        source: AnyArray = np.from_dlpack(value) if through_dlpack else np.asarray(value)
    except Exception as error:  # third-party objects may raise anything
        raise ArgumentError(
            f"{where}: expected {array_type}, got {type(value).__name__} that NumPy cannot read"
            f" as an array: {error}"
        ) from error
    if _kind(source.dtype) == "":
        raise _error(where, array_type, source, _no_numbers(value))
    if not _same_kind(source.dtype, target):
        reason = f"{_not_implicit(source, target)}; if it is wanted, use .astype('{target.name}')"
        raise _error(where, array_type, source, reason)
    return source


def _key_data(value: Any) -> Any:
    """Return the uint32s of typed PRNG keys, which NumPy cannot read; other values unchanged."""
    jax: Any = sys.modules.get("jax")
    is_array = jax is not None and isinstance(value, jax.Array)
    if is_array and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(value)
    return value


def _refuse_masks(value: object, array_type: ArrayType, where: str) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(
            f"{where}: expected {array_type}, got a masked array, whose mask would be lost; pass"
            " the result of its filled()"
        )
    if isinstance(value, list | tuple):
        for element in value:
            if isinstance(element, list | tuple | np.ma.MaskedArray):
                _refuse_masks(element, array_type, where)


def _check_integers_fit(source: AnyArray, array_type: ArrayType, where: str) -> None:
    target = array_type.dtype
    if _kind(target) not in "iu" or source.dtype.kind == "b" or source.size == 0:
        return
    if source.dtype.kind in "iu" and np.can_cast(source.dtype, target, "safe"):
        return
    limits = np.iinfo(target)
    values = source.astype(np.int64) if source.dtype.kind == "V" else source
    for extreme in (int(values.min()), int(values.max())):
        if not limits.min <= extreme <= limits.max:
            reason = f"{extreme} does not fit in {target.name} ({limits.min} to {limits.max})"
            raise _error(where, array_type, source, reason)


def cast(source: AnyArray, target: AnyDtype) -> AnyArray:
    """Return a C-contiguous aligned array of the dtype; bools have only the bytes 0 and 1."""
    if source.dtype.kind == "b" and source.size > 0 and source.view(np.uint8).max() > 1:
        source = source.view(np.uint8) != 0
    if source.dtype != target and _is_extension(source.dtype) and _is_extension(target):
        # ml_dtypes has no casts between some of its types; float32 holds all their values.
        source = source.astype(np.float32)
    return np.require(source, dtype=target, requirements=["C", "A"])


def _is_extension(dtype: AnyDtype) -> bool:
    return bool(dtype.type.__module__ == ml_dtypes.bfloat16.__module__)


def _kind(dtype: AnyDtype) -> str:
    """Return a letter of _KIND_ORDER, or "" for a dtype without numbers."""
    if _is_extension(dtype):  # NumPy's kind of most of these is "V"
        return {"int": "i", "uint": "u"}.get(dtype.name.rstrip("0123456789"), "f")
    return dtype.kind if dtype.kind in _KIND_ORDER else ""


def _same_kind(source: AnyDtype, target: AnyDtype) -> bool:
    kind = _kind(source)
    return kind != "" and _KIND_ORDER.index(kind) <= _KIND_ORDER.index(_kind(target))


def _not_implicit(source: AnyArray, target: AnyDtype) -> str:
    return f"{source.dtype.name} is not converted to {target.name} implicitly"


def _no_numbers(value: object) -> str:
    if value is None or isinstance(value, str | bytes | np.ndarray | np.generic):
        hint = ""
    else:
        hint = f"; {_ON_PYTREES}"
    return f"{type(value).__name__} holds no numbers{hint}"


def _error(where: str, expected: ArrayType, source: AnyArray, reason: str) -> ArgumentError:
    given = describe(source.dtype, source.shape)
    return ArgumentError(f"{where}: expected {expected}, got {given}: {reason}")


def describe(dtype: AnyDtype, shape: tuple[int, ...]) -> str:
    """Return the description of an array for messages: "float32 of shape (3,)"."""
    order = "" if dtype.isnative else f" ({dtype.str})"
    return f"{dtype.name}{order} of shape {shape}"
