# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
from cyxla._pjrt cimport PJRT_Buffer_Type_F64
from cyxla._runtime cimport ABI_VERSION, Input, ProgramSpec, execute, last_error, program_spec

import cyxla

cyxla.check_abi(ABI_VERSION)


def integrate(executable, double[::1] state not None, double step, long num_steps):
    """Advance `state` in place by Euler's method, without the GIL."""
    cdef const ProgramSpec* spec = program_spec(executable)
    cdef double rate[2]
    cdef Input inputs[1]
    cdef void* outputs[1]
    cdef char message[1024]
    cdef int failed = 0
    cdef long i
    if state.size != 2:
        raise ValueError("the state must be two doubles")
    if (
        spec.num_inputs != 1
        or spec.num_outputs != 1
        or spec.output_types[0] != PJRT_Buffer_Type_F64
        or spec.output_bytes[0] != sizeof(rate)
    ):
        raise ValueError("the program must take the state and return its rate, two doubles each")
    inputs[0] = Input(&state[0], PJRT_Buffer_Type_F64, state.size)
    outputs[0] = rate
    with nogil:
        for i in range(num_steps):
            failed = execute(spec, inputs, outputs, True)
            if failed:
                break
            state[0] += step * rate[0]
            state[1] += step * rate[1]
    if failed:
        last_error(message, sizeof(message))
        raise RuntimeError(message.decode("utf-8", "replace"))
