# SPDX-License-Identifier: Apache-2.0
"""Calls an Executable through the C function table, with any addresses and without the GIL."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import cyxla
from cyxla import _runtime


class Input(ctypes.Structure):
    """cyxla_input."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("element_type", ctypes.c_int32),
        ("num_elements", ctypes.c_size_t),
    )


class Spec(ctypes.Structure):
    """The first members of cyxla_program_spec."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("route", ctypes.c_int32),
        ("num_inputs", ctypes.c_size_t),
        ("num_outputs", ctypes.c_size_t),
    )


_SPEC = ctypes.POINTER(Spec)
_ARGUMENTS = (_SPEC, ctypes.POINTER(Input), ctypes.POINTER(ctypes.c_void_p), ctypes.c_int)
_EXECUTE = ctypes.CFUNCTYPE(ctypes.c_int, *_ARGUMENTS)
_PREPARE = ctypes.CFUNCTYPE(ctypes.c_void_p, *_ARGUMENTS)
_PROGRAM_SPEC = ctypes.PYFUNCTYPE(_SPEC, ctypes.py_object)
_SPEC_FUNCTION = ctypes.CFUNCTYPE(None, _SPEC)
_LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)


class _Table(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("abi_version", ctypes.c_int32),
        ("execute", _EXECUTE),
        ("program_spec", _PROGRAM_SPEC),
        ("retain", _SPEC_FUNCTION),
        ("release", _SPEC_FUNCTION),
        ("prepare", _PREPARE),
        ("call", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
        ("discard", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("last_error", _LAST_ERROR),
    )


def table_of_functions() -> _Table:
    """The function table of cyxla.h."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    get.restype = ctypes.c_void_p
    capsule = _runtime._C_API  # type: ignore[attr-defined]
    return _Table.from_address(get(capsule, b"cyxla._runtime._C_API"))


class NativeProgram:
    """The spec of an Executable, which this object does not keep alive."""

    def __init__(self, executable: cyxla.Executable) -> None:
        self._table = table_of_functions()
        self._types = executable.input_types
        self._spec = self._table.program_spec(executable)

    @property
    def route(self) -> int:
        """CYXLA_ROUTE_PJRT or CYXLA_ROUTE_DIRECT."""
        return int(self._spec.contents.route)

    def execute(
        self, inputs: Sequence[int], outputs: Sequence[int | None], zero_copy: bool = True
    ) -> None:
        """Execute once with arrays at these addresses; None drops an output."""
        described = [
            Input(address, type_.element_type, type_.size)
            for address, type_ in zip(inputs, self._types, strict=True)
        ]
        result = self._table.execute(
            self._spec,
            (Input * max(len(described), 1))(*described),
            (ctypes.c_void_p * max(len(outputs), 1))(*outputs),
            int(zero_copy),
        )
        if result != 0:
            buffer = ctypes.create_string_buffer(1000)
            self._table.last_error(buffer, len(buffer))
            raise cyxla.Error(buffer.value.decode("utf-8", "replace"))
