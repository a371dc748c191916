# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The Cython interface of cyxla; cyxla/cyxla.h documents units, lifetimes and thread safety.

    from cython.cimports.cyxla._runtime import ABI_VERSION, Input, ProgramSpec, execute

A module that cimports this must call `cyxla.check_abi(ABI_VERSION)` on import.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t

cdef extern from "cyxla/cyxla.h" nogil:
    enum:
        ABI_VERSION "CYXLA_ABI_VERSION"
        ALIGNMENT "CYXLA_ALIGNMENT"
        NEEDS_PYTHON "CYXLA_NEEDS_PYTHON"
        ROUTE_PJRT "CYXLA_ROUTE_PJRT"
        ROUTE_DIRECT "CYXLA_ROUTE_DIRECT"

    # What last_error_code() returns.
    enum:
        ERROR_NONE "CYXLA_ERROR_NONE"
        ERROR_INTERNAL "CYXLA_ERROR_INTERNAL"
        ERROR_ARGUMENT "CYXLA_ERROR_ARGUMENT"
        ERROR_PLUGIN "CYXLA_ERROR_PLUGIN"
        ERROR_COMPILE "CYXLA_ERROR_COMPILE"
        ERROR_EXECUTION "CYXLA_ERROR_EXECUTION"
        ERROR_UNSUPPORTED "CYXLA_ERROR_UNSUPPORTED"
        ERROR_SHUTDOWN "CYXLA_ERROR_SHUTDOWN"
        ERROR_FORK "CYXLA_ERROR_FORK"

    ctypedef struct Input "cyxla_input":
        const void* data
        int32_t element_type
        size_t num_elements

    ctypedef struct ProgramSpec "cyxla_program_spec":
        size_t struct_size
        uint32_t flags
        int32_t route
        size_t num_inputs
        size_t num_outputs
        const void* impl
        const int32_t* input_types
        const size_t* input_elements
        const size_t* input_bytes
        const int32_t* output_types
        const size_t* output_elements
        const size_t* output_bytes
        const size_t* input_ranks
        const size_t* output_ranks
        const int64_t* const* input_dimensions
        const int64_t* const* output_dimensions
        const char* const* input_names
        const char* const* output_names
        const char* name

    ctypedef struct Call "cyxla_call":
        pass

# Executes a program; returns 0, or -1 with the reason in last_error(). Thread-safe.
cdef int execute(
    const ProgramSpec* spec, const Input* inputs, void* const* outputs, bint zero_copy
) noexcept nogil

# Returns the spec of an Executable, valid while the Executable lives or until release() after
# retain().
cdef const ProgramSpec* program_spec(object executable) except NULL
cdef void retain(const ProgramSpec* spec) noexcept nogil
cdef void release(const ProgramSpec* spec) noexcept nogil

# Returns a call with fixed arrays, for one thread at a time, or NULL with the reason in
# last_error(). discard() frees it.
cdef Call* prepare(
    const ProgramSpec* spec, const Input* inputs, void* const* outputs, bint zero_copy
) noexcept nogil
cdef int call(Call* prepared) noexcept nogil
cdef void discard(Call* prepared) noexcept nogil

# Binds an input or output of a prepared call to another address; `index` counts the inputs, then the
# outputs. Returns 0, or -1 with the reason in last_error(); the old address then stays bound.
cdef int rebind(Call* prepared, size_t index, const void* address) noexcept nogil

# Copies this thread's last message, truncated to `size` bytes; returns the full length.
cdef size_t last_error(char* buffer, size_t size) noexcept nogil

# Returns ERROR_EXECUTION and so on for this thread's last failure; clear_error() removes code and
# message.
cdef int32_t last_error_code() noexcept nogil
cdef void clear_error() noexcept nogil

# Returns memory at a 64-byte-aligned address, NULL if out of memory.
cdef void* aligned_memory(size_t size) noexcept nogil
cdef void free_aligned(void* pointer) noexcept nogil

# Returns the bytes of one element of a PJRT_Buffer_Type, 0 if unknown.
cpdef size_t itemsize(int32_t element_type) noexcept nogil
