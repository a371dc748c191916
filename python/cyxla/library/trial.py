# SPDX-License-Identifier: Apache-2.0
"""Loads an object file into this process and calls its functions as the plugin calls kernels."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import llvmlite.binding as llvm
import numpy as np

from cyxla.errors import LibraryError
from cyxla.library.driver import Source
from cyxla.library.emit import machine_of, target_of
from cyxla.library.symbols import undefined_symbols

_ALIGNMENT: Final = 64
_FILLER: Final = 0xA5

# The plugin flushes subnormal inputs and results to zero: bits 6 and 15 of MXCSR.
_HARNESS: Final = """\
define void @flushed(ptr %call, ptr %inputs, ptr %outputs, ptr %workspace) {
  %state = alloca i32
  %own = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %state)
  %before = load i32, ptr %state
  %within = or i32 %before, 32832
  store i32 %within, ptr %own
  call void @llvm.x86.sse.ldmxcsr(ptr %own)
  call void %call(ptr %inputs, ptr %outputs, ptr %workspace)
  call void @llvm.x86.sse.ldmxcsr(ptr %state)
  ret void
}
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""
# The versions that the plugins are bound to. Newer ones differ in the sign of NaN, and on subnormal
# numbers while these count as zero.
_BOUND_VERSIONS: Final = dict.fromkeys(("log", "exp", "exp2", "pow"), b"GLIBC_2.2.5")


# The processor time of a call that may never end. Calls that do end take a thousandth of it.
_LOOP_SECONDS: Final = 0.2

Outputs: TypeAlias = list[bytes]
"""The bytes of each output."""


class Trial(NamedTuple):
    """Calls of a function.

    Attributes:
        source: the function.
        inputs: the bytes of each input of each call.
        output_bytes: the size of each output.
        may_hang: whether it has a loop that might not end on some inputs.
    """

    source: Source
    inputs: Sequence[Sequence[bytes]]
    output_bytes: Sequence[int]
    may_hang: bool


class _Descriptor(ctypes.Structure):
    """`cyxla_library_function` of the header."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("num_inputs", ctypes.c_uint64),
        ("num_outputs", ctypes.c_uint64),
        ("workspace_bytes", ctypes.c_uint64),
        ("call", ctypes.c_void_p),
    )


def run_trials(code: bytes, trials: Sequence[Trial]) -> list[list[Outputs | None]]:
    """Return, for each function and call, the outputs; None for a call that did not end.

    Raises LibraryError for a function that is in no library of this machine.
    """
    _bind_functions(undefined_symbols(code))
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(_HARNESS), machine_of(target_of(None, "native"), jit=True)
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    pointer = ctypes.c_void_p
    flushed = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, pointer)(
        engine.get_function_address("flushed")
    )
    results = []
    for trial in trials:
        describe = ctypes.CFUNCTYPE(ctypes.POINTER(_Descriptor))(
            engine.get_function_address(f"{trial.source.name}_function")
        )
        call = describe().contents.call
        run = _outputs_of_child if trial.may_hang else _outputs
        results.append([run(flushed, call, trial, inputs) for inputs in trial.inputs])
    return results


def _bind_functions(names: Iterable[str]) -> None:
    """Bind functions of the C library, of the mathematics library and of the compiler's library."""
    libraries = [ctypes.CDLL(name) for name in ("libm.so.6", "libc.so.6", "libgcc_s.so.1")]
    dlvsym = ctypes.CDLL(None).dlvsym
    dlvsym.restype = ctypes.c_void_p
    dlvsym.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    for name in names:
        address = None
        if version := _BOUND_VERSIONS.get(name):
            address = dlvsym(libraries[0]._handle, name.encode(), version)
        found = (getattr(library, name, None) for library in libraries)
        function = next((each for each in found if each is not None), None)
        if address is None and function is not None:
            address = ctypes.cast(function, ctypes.c_void_p).value
        if address is None:
            raise LibraryError(
                f"a kernel calls {name!r}, a function of the plugin that no library has, so it"
                " cannot run without the plugin"
            )
        llvm.add_symbol(name, address)


def _outputs_of_child(
    flushed: Any, call: int, trial: Trial, inputs: Sequence[bytes]
) -> Outputs | None:
    """Call the function in a forked process, which is ended when the call takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.setitimer(signal.ITIMER_PROF, _LOOP_SECONDS)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(_outputs(flushed, call, trial, inputs), pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGPROF:
        raise LibraryError(
            f"the function {trial.source.name!r} ended its process with signal"
            f" {os.WTERMSIG(status)} on trial inputs"
        )
    return pickle.loads(answer) if os.WIFEXITED(status) else None


def _outputs(flushed: Any, call: int, trial: Trial, inputs: Sequence[bytes]) -> Outputs:
    arrays = [_aligned(len(data)) for data in inputs]
    for array, data in zip(arrays, inputs, strict=True):
        array[:] = np.frombuffer(data, np.uint8)
    outputs = [_aligned(size) for size in trial.output_bytes]
    for output in outputs:
        output.fill(_FILLER)
    workspace = _aligned(trial.source.workspace_bytes)
    flushed(call, _addresses(arrays), _addresses(outputs), workspace.ctypes.data)
    return [output.tobytes() for output in outputs]


def _addresses(arrays: Sequence[Any]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def _aligned(size_bytes: int) -> Any:
    raw = np.zeros(size_bytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size_bytes]
