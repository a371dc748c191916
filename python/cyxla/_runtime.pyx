# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, binding=True, embedsignature=False
# distutils: language = c++
"""The extension module: glue between Python, Cython, C and the C++ core. Use the package `cyxla` instead."""
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libcpp cimport bool as cpp_bool
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from cyxla._core cimport *

import warnings
from threading import main_thread as find_main_thread
from typing import NamedTuple

import numpy

from cyxla import dtypes, errors, memory

set_exception_class(ErrorCode.kInternal, errors.Error)
set_exception_class(ErrorCode.kArgument, errors.ArgumentError)
set_exception_class(ErrorCode.kPlugin, errors.PluginError)
set_exception_class(ErrorCode.kCompile, errors.CompileError)
set_exception_class(ErrorCode.kExecution, errors.ExecutionError)
set_exception_class(ErrorCode.kUnsupported, errors.UnsupportedError)
set_exception_class(ErrorCode.kShutdown, errors.ShutdownError)
set_exception_class(ErrorCode.kFork, errors.ForkError)

main_thread = find_main_thread().ident

globals()["ABI_VERSION"] = <int>ABI_VERSION

include "_native/arrays.pxi"
include "_native/executable.pxi"
include "_native/bound_call.pxi"
include "_native/host_callbacks.pxi"
include "_native/program_file.pxi"


# The functions of _runtime.pxd.

cdef int execute(
    const ProgramSpec* spec, const Input* inputs, void* const* outputs, bint zero_copy
) noexcept nogil:
    return core_execute(spec, inputs, outputs, zero_copy)

cdef const ProgramSpec* program_spec(object executable) except NULL:
    if not isinstance(executable, Executable):
        raise TypeError(f"expected a cyxla.Executable, got {type(executable).__name__}")
    return (<Executable>executable).spec

cdef void retain(const ProgramSpec* spec) noexcept nogil:
    core_retain(spec)

cdef void release(const ProgramSpec* spec) noexcept nogil:
    core_release(spec)

cdef Call* prepare(
    const ProgramSpec* spec, const Input* inputs, void* const* outputs, bint zero_copy
) noexcept nogil:
    return core_prepare(spec, inputs, outputs, zero_copy)

cdef int call(Call* prepared) noexcept nogil:
    return core_call(prepared)

cdef void discard(Call* prepared) noexcept nogil:
    core_discard(prepared)

cdef int rebind(Call* prepared, size_t index, const void* address) noexcept nogil:
    return core_rebind(prepared, index, address)

cdef size_t last_error(char* buffer, size_t size) noexcept nogil:
    return core_last_error(buffer, size)

cdef int32_t last_error_code() noexcept nogil:
    return core_last_error_number()

cdef void clear_error() noexcept nogil:
    core_clear_error()

cdef void* aligned_memory(size_t size) noexcept nogil:
    return core_aligned_memory(size)

cdef void free_aligned(void* pointer) noexcept nogil:
    core_free_aligned(pointer)

cpdef size_t itemsize(int32_t element_type) noexcept nogil:
    """Return the bytes of one element of a PJRT element type; 0 if it is unknown or smaller than a byte."""
    return core_itemsize(element_type)


# The C function table.

cdef const ProgramSpec* spec_for_c(void* executable) except NULL:
    if executable == NULL:
        raise TypeError("expected a cyxla.Executable, got NULL")
    return program_spec(<object><PyObject*>executable)

cdef Api function_table = make_function_table(spec_for_c)
_C_API = PyCapsule_New(&function_table, "cyxla._runtime._C_API", NULL)


# The functions for the package's Python modules.

class LoadedPlugin(NamedTuple):
    """The properties that the loaded plugin reports."""

    api_version: tuple[int, int]
    platform_name: str
    platform_version: str
    stablehlo_version: str | None
    attributes: dict[str, object]
    aliased_inputs: bool
    inplace_outputs: bool


_loaded = None


cdef int set_option(NamedValues& options, str name, object value) except -1:
    cdef string key = name.encode()
    if isinstance(value, bool):
        set_value[NamedValues, cpp_bool](options, key, value)
    elif isinstance(value, int):
        set_value[NamedValues, int64_t](options, key, value)
    elif isinstance(value, float):
        set_value[NamedValues, float](options, key, value)
    elif isinstance(value, str):
        set_value[NamedValues, string](options, key, value.encode())
    elif isinstance(value, tuple):
        set_value[NamedValues, vector[int64_t]](options, key, value)
    else:
        raise errors.PluginError(
            f"the create option {name!r} must be a bool, int, float, str or tuple of ints,"
            f" not {type(value).__name__}"
        )
    return 0


cdef Runtime* need_runtime() except NULL:
    cdef Runtime* runtime = Runtime.get()
    if runtime == NULL:
        raise errors.PluginError("no plugin is loaded; call cyxla.initialize()")
    return runtime


def load_runtime(str path, create_options, threads=None):
    """Load a plugin, make its client and return its properties; once per process.

    `threads` is the cap on its thread pool. Raises PluginError.
    """
    cdef LoadRequest request
    request.path = path.encode("utf-8", "surrogateescape")
    for name, value in create_options.items():
        set_option(request.options, name, value)
    if threads is not None:
        request.threads.emplace(<size_t>threads)
    cdef WaitLength length
    cdef InterruptibleWait wait
    wait.begin(length, b"\ncyxla: Ctrl-C is noted; it takes effect once the plugin is loaded\n")
    try:
        with nogil:
            Runtime.load(move(request))
    finally:
        wait.end()
    global _loaded
    _loaded = describe_plugin(Runtime.get())
    return _loaded


cdef describe_plugin(Runtime* runtime):
    version = runtime.plugin().api().version()
    attributes = named_values_to_python(runtime.plugin().attributes())
    stablehlo = attributes.get("stablehlo_current_version")
    return LoadedPlugin(
        api_version=(version.major, version.minor),
        platform_name=runtime.client().platform_name().decode(),
        platform_version=runtime.client().platform_version().decode("utf-8", "replace"),
        stablehlo_version=None if stablehlo is None else ".".join(map(str, stablehlo)),
        attributes=attributes,
        aliased_inputs=runtime.capabilities().aliased_inputs,
        inplace_outputs=runtime.capabilities().inplace_outputs,
    )


def loaded_runtime():
    """Return the loaded plugin's properties, or None."""
    return _loaded


def shutdown():
    """Wait for calls in flight, then destroy the executables and the client. Later calls fail."""
    with nogil:
        Runtime.shut_down()


include "_native/compilation.pxi"
include "_native/plan.pxi"


def register_ffi_handler(str name, str platform, uintptr_t address):
    """Register the XLA FFI handler at `address` with the loaded plugin as a custom-call target.

    Returns the FFI versions of the handler and the plugin; a handler newer than the plugin gets an adapter.
    """
    cdef Runtime* runtime = need_runtime()
    cdef string target = name.encode()
    cdef string ffi_platform = platform.encode()
    cdef FfiRegistration registration
    with nogil:
        registration = runtime.register_ffi_handler(target, ffi_platform, <void*>address)
    return (
        (registration.handler_version.major, registration.handler_version.minor),
        (registration.plugin_version.major, registration.plugin_version.minor),
    )


def register_gpu_custom_call(str name, int api_version, stages):
    """Register a handler with the loaded GPU plugin; `stages` has its functions' addresses by stage."""
    cdef Runtime* runtime = need_runtime()
    cdef string target = name.encode()
    cdef GpuHandler handler
    handler.api_version = api_version
    handler.instantiate = <void*><uintptr_t>stages.get("instantiate", 0)
    handler.prepare = <void*><uintptr_t>stages.get("prepare", 0)
    handler.initialize = <void*><uintptr_t>stages.get("initialize", 0)
    handler.execute = <void*><uintptr_t>stages.get("execute", 0)
    with nogil:
        runtime.register_gpu_custom_call(target, handler)


def serialize(Executable executable not None):
    """Return a compiled program as bytes for the same plugin on the same machine.

    Raises UnsupportedError if the plugin cannot serialize.
    """
    cdef Runtime* runtime = need_runtime()
    cdef const ProgramSpec* spec = executable.spec
    cdef string serialized
    with nogil:
        serialized = runtime.serialize(Program.of(spec[0]))
    if serialized.empty():
        raise errors.UnsupportedError("the plugin cannot serialize a compiled program")
    return serialized


def device_description():
    """Return the first device's kind, debug string and attributes, and the number of devices."""
    cdef Runtime* runtime = need_runtime()
    cdef DeviceDescription device
    with nogil:
        device = runtime.describe_device()
    return (
        device.kind.decode("utf-8", "replace"), device.debug_string.decode("utf-8", "replace"),
        named_values_to_python(device.attributes), device.num_addressable,
    )


def direct_refusal(bint may_fork=True):
    """Return why the plugin's programs cannot be called directly, '' if they can. The first call tests the plugin."""
    cdef Runtime* runtime = need_runtime()
    cdef string reason
    with nogil:
        reason = runtime.direct_refusal(may_fork)
    return reason.decode("utf-8", "replace")


def error_info():
    """Return the number of failed executions in this process, and the last message."""
    info = core_error_info()
    return info.count, info.message.decode("utf-8", "replace")

