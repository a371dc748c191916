# SPDX-License-Identifier: Apache-2.0
"""cyxla from C: `execute` with fixed or changing addresses, and `call` of a prepared call."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any

import cyxla

from case import Case
from loops import CallError, NativeLoop, pointers
from native_build import ROOT, address_of, load_library
from rivals import Rival
from tasks import Array

# An address recurs after this many calls; caches still hold the inputs of the small tasks.
MOVING_SETS = 8


class _Input(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("element_type", ctypes.c_int32),
        ("num_elements", ctypes.c_size_t),
    )


class _ExecuteState(ctypes.Structure):
    _fields_ = (
        ("api", ctypes.c_void_p),
        ("spec", ctypes.c_void_p),
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("num_sets", ctypes.c_size_t),
        ("next_set", ctypes.c_size_t),
        ("zero_copy", ctypes.c_int),
    )


class _CallState(ctypes.Structure):
    _fields_ = (("api", ctypes.c_void_p), ("call", ctypes.c_void_p))


@functools.cache
def _library() -> ctypes.CDLL:
    library = load_library(ROOT / "rivals" / "cyxla_step.c")
    address = ctypes.c_void_p
    library.cyxla_step_prepare.argtypes = [address] * 4
    library.cyxla_step_prepare.restype = address
    library.cyxla_step_discard.argtypes = [address] * 2
    library.cyxla_step_error.argtypes = [address, ctypes.c_char_p, ctypes.c_size_t]
    return library


@functools.cache
def _api() -> int:
    from cyxla import _runtime

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    get.restype = ctypes.c_void_p
    api: int = get(_runtime._C_API, b"cyxla._runtime._C_API")  # type: ignore[attr-defined]
    return api


def _spec_of(executable: cyxla.Executable) -> int:
    # program_spec uses Python objects, so it needs the GIL: PyDLL keeps it.
    function = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object)(
        address_of(_library().cyxla_step_spec)
    )
    spec: int = function(_api(), executable)
    return spec


def _reason() -> str:
    buffer = ctypes.create_string_buffer(1024)
    _library().cyxla_step_error(_api(), buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace") or "cyxla gave no reason"


def compile_case(case: Case, **options: Any) -> cyxla.Executable:
    """Compile the task's program again."""
    return cyxla.compile_program(case.program, **options)[0]


def describe_inputs(executable: cyxla.Executable, *sets: list[Array]) -> Any:
    """A C array of cyxla_input for one or more sets of inputs."""
    types = executable.input_types
    described = [
        _Input(array.ctypes.data, type_.element_type, type_.size)
        for arrays in sets
        for array, type_ in zip(arrays, types, strict=True)
    ]
    return (_Input * max(len(described), 1))(*described)


def execute_loop(
    case: Case, executable: cyxla.Executable, *, zero_copy: bool = True, moving: bool = False
) -> NativeLoop:
    """A loop of `execute` from C, with contexts, arrays and outputs of its own."""
    count = 1 if not moving else 2 if case.task.is_large else MOVING_SETS
    sets = [case.copy_inputs() for _ in range(count)] if moving else [case.inputs]
    outputs = case.new_outputs()
    inputs, addresses = describe_inputs(executable, *sets), pointers(outputs)
    state = _ExecuteState(
        _api(),
        _spec_of(executable),
        ctypes.addressof(inputs),
        ctypes.addressof(addresses),
        count,
        0,
        int(zero_copy),
    )

    def refresh() -> None:
        for arrays in sets:
            case.refresh(arrays)

    return NativeLoop(
        address_of(_library().cyxla_step_execute),
        ctypes.addressof(state),
        outputs,
        keep=(state, inputs, addresses, sets, executable),
        refresh=refresh if moving else None,
        reason=_reason,
    )


def call_loop(case: Case, executable: cyxla.Executable) -> NativeLoop:
    """A loop of `call` with a call prepared with the task's inputs."""
    outputs = case.new_outputs()
    inputs, addresses = describe_inputs(executable, case.inputs), pointers(outputs)
    library, api = _library(), _api()
    call = library.cyxla_step_prepare(api, _spec_of(executable), inputs, addresses)
    if call is None:
        raise CallError(_reason())
    state = _CallState(api, call)
    loop = NativeLoop(
        address_of(library.cyxla_step_call),
        ctypes.addressof(state),
        outputs,
        keep=(state, executable, case.inputs),
        reason=_reason,
    )
    weakref.finalize(loop, library.cyxla_step_discard, api, call)
    return loop


def _execute(
    zero_copy: bool = True, moving: bool = False, **options: Any
) -> Callable[[Case], NativeLoop]:
    return lambda case: execute_loop(
        case, compile_case(case, **options), zero_copy=zero_copy, moving=moving
    )


def _call(**options: Any) -> Callable[[Case], NativeLoop]:
    return lambda case: call_loop(case, compile_case(case, **options))


# A rival without "pjrt" in its name takes the route that cyxla chooses.
_PJRT = {"route": "pjrt"}
RIVALS = tuple(
    Rival(name, title, "C", prepare)
    for name, title, prepare in (
        ("cyxla-call", "cyxla call, prepared", _call()),
        ("cyxla-execute", "cyxla execute, kept", _execute()),
        ("cyxla-execute-moving", "cyxla execute, moving", _execute(moving=True)),
        ("cyxla-call-pjrt", "cyxla call, prepared, PJRT", _call(**_PJRT)),
        ("cyxla-execute-pjrt", "cyxla execute, kept, PJRT", _execute(**_PJRT)),
        (
            "cyxla-execute-one-thread-pjrt",
            "cyxla execute, 1-thread kernels, PJRT",
            _execute(intra_op_threads=1, **_PJRT),
        ),
        (
            "cyxla-execute-in-place-pjrt",
            "cyxla execute, outputs in place, PJRT",
            _execute(outputs_in_place=True, **_PJRT),
        ),
        (
            "cyxla-execute-copy-pjrt",
            "cyxla execute, zero_copy 0, PJRT",
            _execute(zero_copy=False, **_PJRT),
        ),
        (
            "cyxla-execute-moving-pjrt",
            "cyxla execute, moving, PJRT",
            _execute(moving=True, **_PJRT),
        ),
        (
            "cyxla-execute-moving-copy-pjrt",
            "cyxla execute, moving, zero_copy 0, PJRT",
            _execute(zero_copy=False, moving=True, **_PJRT),
        ),
    )
)
