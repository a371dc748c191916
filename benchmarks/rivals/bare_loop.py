# SPDX-License-Identifier: Apache-2.0
"""A bare PJRT loop in C++ over the same plugin and the same StableHLO: bare_loop.cpp."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable

import cyxla
import numpy as np

from case import Case
from loops import CallError, NativeLoop, pointers
from native_build import ROOT, address_of, load_library
from rivals import NotApplicableError, Rival
from rivals.cyxla_native import MOVING_SETS


@functools.cache
def _library() -> ctypes.CDLL:
    library = load_library(ROOT / "rivals" / "bare_loop.cpp")
    address, count = ctypes.c_void_p, ctypes.c_size_t
    library.bare_error.restype = ctypes.c_char_p
    library.bare_client.argtypes = [ctypes.c_char_p, ctypes.c_int]
    library.bare_client.restype = address
    library.bare_program.argtypes = [
        *(address, ctypes.c_char_p, count, count, address, address, address, count, address)
    ]
    library.bare_program.restype = address
    library.bare_program_destroy.argtypes = [address]
    library.bare_state.argtypes = [address, count, address, address, ctypes.c_int]
    library.bare_state.restype = address
    library.bare_state_destroy.argtypes = [address, ctypes.c_int]
    return library


def _reason() -> str:
    message: bytes = _library().bare_error()
    return message.decode("utf-8", "replace")


@functools.cache
def _client(inline: bool) -> int:
    info = cyxla.runtime_info()
    if inline and "asynchronous" not in info.plugin.create_options:
        raise NotApplicableError("the plugin has no option for a client that executes inline")
    client: int | None = _library().bare_client(str(info.plugin.path).encode(), int(inline))
    if client is None:
        raise CallError(_reason())
    return client


class BareProgram:
    """Compiles the task's program with a client of its own."""

    def __init__(self, case: Case, *, inline: bool) -> None:
        inputs, outputs = case.program.inputs, case.program.outputs
        types = np.array([array.element_type for array in inputs], np.int32)
        ranks = np.array([len(array.shape) for array in inputs], np.uintp)
        dims = np.array([size for array in inputs for size in array.shape], np.int64)
        output_bytes = np.array([array.size_bytes for array in outputs], np.uintp)
        code = case.program.stablehlo
        library = _library()
        program: int | None = library.bare_program(
            *(_client(inline), code, len(code)),
            *(len(inputs), types.ctypes.data, ranks.ctypes.data, dims.ctypes.data),
            *(len(outputs), output_bytes.ctypes.data),
        )
        if program is None:
            raise CallError(_reason())
        self.address = program
        weakref.finalize(self, library.bare_program_destroy, program).atexit = False


def bare_loop(case: Case, program: BareProgram, form: str) -> NativeLoop:
    """A loop of one of the steps in bare_loop.cpp, with outputs of its own."""
    kept = form in ("kept", "unawaited")
    count = 1 if kept or case.task.is_large else MOVING_SETS
    sets = [case.inputs] if kept else [case.copy_inputs() for _ in range(count)]
    outputs = case.new_outputs()
    library = _library()
    data = pointers([array for arrays in sets for array in arrays])
    state = library.bare_state(program.address, count, data, pointers(outputs), int(kept))
    if state is None:
        raise CallError(_reason())

    def refresh() -> None:
        for arrays in sets:
            case.refresh(arrays)

    loop = NativeLoop(
        address_of(getattr(library, f"bare_step_{form}")),
        state,
        outputs,
        keep=(program, sets),
        refresh=None if kept else refresh,
        reason=_reason,
    )
    weakref.finalize(loop, library.bare_state_destroy, state, int(kept)).atexit = False
    return loop


def _form(form: str, inline: bool) -> Callable[[Case], NativeLoop]:
    return lambda case: bare_loop(case, BareProgram(case, inline=inline), form)


RIVALS = (
    Rival("bare-kept", "bare PJRT loop, views kept", "C", _form("kept", True)),
    Rival("bare-unawaited", "bare PJRT loop, no events", "C", _form("unawaited", True)),
    Rival("bare-fresh-views", "bare PJRT loop, fresh views", "C", _form("fresh_views", True)),
    Rival("bare-copies", "bare PJRT loop, copies", "C", _form("copies", True)),
    Rival(
        "bare-copies-default", "bare PJRT loop, copies, default client", "C", _form("copies", False)
    ),
)
