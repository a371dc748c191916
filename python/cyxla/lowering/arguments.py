# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments that a function is lowered for, and names their leaves.

Imports jax; only `cyxla.lowering` imports this module.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
import numpy as np

from cyxla.dtypes import ArrayType, ElementType, element_type_of
from cyxla.errors import ArgumentError, LoweringError

__all__ = [
    "Leaf",
    "advice_on_numbers",
    "declared_leaves",
    "is_key_type",
    "path_names",
    "specifications",
    "unsupported_dtype",
]

_ShapeDtypeStruct: Any = jax.ShapeDtypeStruct  # without annotations in some versions of JAX
_WIDE_TYPES: Final = (ElementType.F64, ElementType.S64, ElementType.U64, ElementType.C128)
_PYTHON_SCALARS: Final = (bool, int, float, complex)
_MAX_BYTES: Final = 2**63 - 1  # XLA counts bytes in an int64


class Leaf(NamedTuple):
    """One declared leaf; `where` names it in errors, such as "argument 1 ('p')"."""

    name: str
    where: str
    value: Any

    @property
    def is_wide(self) -> bool:
        """Whether JAX would narrow it without x64: a 64-bit number or complex128."""
        if isinstance(self.value, _PYTHON_SCALARS) and not isinstance(self.value, np.generic):
            return False
        if is_key_type(self.value.dtype):
            return False
        return element_type_of(self.value.dtype) in _WIDE_TYPES


def declared_leaves(function: Callable[..., Any], arguments: object) -> tuple[Leaf, ...]:
    """Return the checked leaves of `arguments` in JAX's flatten order.

    Raises:
        ArgumentError: `arguments` is not a list or tuple, a leaf is not an array, or its shape is
            invalid.
        LoweringError: a leaf has a symbolic dimension, an unsupported dtype or several devices.
    """
    if not isinstance(arguments, list | tuple):
        raise ArgumentError(
            f"arguments must be a list or tuple with one entry for each parameter, got"
            f" {type(arguments).__name__}; write lower(function, [argument]) for one parameter"
        )
    names = _parameter_names(function, len(arguments))
    leaves = []
    for index, (name, argument) in enumerate(zip(names, arguments, strict=True)):
        for path, value in jax.tree_util.tree_flatten_with_path(argument)[0]:
            leaf_name = name + jax.tree_util.keystr(path)
            where = f"argument {index} ({leaf_name!r})"
            _check_leaf(value, where)
            leaves.append(Leaf(leaf_name, where, value))
    return tuple(leaves)


def specifications(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments for `jax.jit(...).trace`, with a ShapeDtypeStruct for every leaf.

    Drops shardings and values. Python scalars get JAX's default dtypes, which depend on x64.
    """

    def specification(value: Any) -> Any:
        if isinstance(value, _PYTHON_SCALARS) and not isinstance(value, np.generic):
            dtype = jax.dtypes.canonicalize_dtype(type(value))
            return _ShapeDtypeStruct((), dtype, weak_type=True)
        if is_key_type(value.dtype):  # JAX lowers it to uint32 with one more dimension
            return _ShapeDtypeStruct(tuple(value.shape), value.dtype)
        dtype = np.dtype(value.dtype).newbyteorder("=")
        shape = tuple(int(dimension) for dimension in value.shape)
        return _ShapeDtypeStruct(shape, dtype, weak_type=getattr(value, "weak_type", False))

    return tuple(jax.tree.map(specification, tuple(arguments)))


def advice_on_numbers(function: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """Return advice for a list of numbers that was meant as an array or a shape, if there is one.

    JAX accepts it as a pytree of scalars, so it shows up only as an error of the function.
    """
    names = _parameter_names(function, len(arguments))
    for index, (name, argument) in enumerate(zip(names, arguments, strict=True)):
        if isinstance(argument, list | tuple) and argument and _holds_numbers(argument):
            is_shape = all(type(number) is int and number >= 0 for number in argument)
            shown = repr(argument) if len(repr(argument)) <= 60 else "[...]"
            return (
                f"; argument {index} ({name!r}) is a {type(argument).__name__} of Python numbers,"
                " which JAX takes as a pytree of scalars: for an array"
                + (f" of this shape write jax.ShapeDtypeStruct({shown}, np.float64)," * is_shape)
                + (" for one" * is_shape)
                + f" of these values{' write' * (not is_shape)} np.array({shown})"
            )
    return ""


def _holds_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_holds_numbers, value))
    return isinstance(value, _PYTHON_SCALARS) and not isinstance(value, np.generic)


def path_names(root: str, tree: Any) -> tuple[str, ...]:
    """Return `root` followed by JAX's key path, for every leaf of a pytree."""
    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    return tuple(root + jax.tree_util.keystr(path) for path, _ in paths)


def is_key_type(dtype: Any) -> bool:
    """Return whether it is a dtype of JAX's typed PRNG keys."""
    return bool(jax.numpy.issubdtype(dtype, jax.dtypes.prng_key))


def unsupported_dtype(dtype: Any) -> str | None:
    """Return why an array of this dtype cannot be an input or output, or None if it can."""
    if dtype == jax.dtypes.float0:
        return "float0, JAX's type for derivatives of integers, has no bytes; leave it out"
    if is_key_type(dtype):
        return None
    if jax.numpy.issubdtype(dtype, jax.dtypes.extended):
        return f"{dtype} is an extended dtype of JAX that has no layout in host memory"
    try:
        element_type_of(dtype)
    except (ArgumentError, TypeError) as error:
        name = getattr(dtype, "name", str(dtype))
        if name.startswith(("int", "uint", "float4", "float6")):
            return (
                f"{name} is smaller than a byte and has no agreed layout in host memory; convert it"
                " inside the function"
            )
        return str(error)
    return None


def _check_leaf(value: Any, where: str) -> None:
    if isinstance(value, _PYTHON_SCALARS):
        return
    if isinstance(value, type):
        raise ArgumentError(
            f"{where}: expected a jax.ShapeDtypeStruct or an array, got the type {value.__name__};"
            f" write jax.ShapeDtypeStruct(shape, {value.__name__})"
        )
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        raise ArgumentError(
            f"{where}: expected a jax.ShapeDtypeStruct or an array, got"
            f" {type(value).__name__} {value!r}; bind other values with functools.partial"
        )
    reason = unsupported_dtype(value.dtype)
    if reason is not None:
        raise LoweringError(f"{where}: {reason}")
    devices = getattr(getattr(value, "sharding", None), "num_devices", 1)
    if devices != 1:
        raise LoweringError(
            f"{where}: it is sharded over {devices} devices, and a program runs on one; give its"
            " shape and dtype without a sharding"
        )
    for dimension in value.shape:
        if jax.export.is_symbolic_dim(dimension):
            raise LoweringError(
                f"{where}: dimension {dimension} of shape {tuple(map(str, value.shape))} is"
                " symbolic, and a program has static shapes; lower once for each size"
            )
        _check_dimension(dimension, value.shape, where)
    shape = tuple(map(int, value.shape))
    # For a key this is a lower bound: JAX decides how many uint32s it has.
    element_type = ElementType.U32 if is_key_type(value.dtype) else element_type_of(value.dtype)
    num_bytes = ArrayType(element_type, shape).size_bytes
    if num_bytes > _MAX_BYTES:
        raise ArgumentError(
            f"{where}: the shape {value.shape} takes {num_bytes} bytes, which overflows an int64"
        )


def _check_dimension(dimension: Any, shape: tuple[Any, ...], where: str) -> None:
    try:
        is_dimension = operator.index(dimension) >= 0
    except TypeError:
        is_dimension = False
    if not is_dimension:
        raise ArgumentError(
            f"{where}: dimension {dimension!r} of shape {shape} is not an integer of at least 0"
        )


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first `count` positional parameters, arg<index> if unknown."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some callables implemented in C have no signature
        parameters = []
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind == parameter.VAR_POSITIONAL:
            names.extend(f"{parameter.name}[{index}]" for index in range(count - len(names)))
    names.extend(f"arg{index}" for index in range(len(names), count))
    return names[:count]
