# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Values at many points, with the threads of C++ and prepared calls."""
from cyxla._pjrt cimport PJRT_Buffer_Type_F64
from cyxla._runtime cimport (
    ABI_VERSION, ERROR_NONE, NEEDS_PYTHON, Call, Input, ProgramSpec, call, clear_error, discard, itemsize,
    last_error, last_error_code, prepare, program_spec, rebind, release, retain,
)
from libc.stdint cimport int32_t
from libcpp.vector cimport vector

import cyxla
import numpy as np

cyxla.check_abi(ABI_VERSION)

cdef extern from "run_threads.hpp" nogil:
    void run_threads(size_t count, void (*work)(size_t, void*) noexcept nogil, void* context) except +


cdef struct Failure:
    int32_t code
    char message[1024]


cdef struct Task:
    const ProgramSpec* spec
    const double* points
    double* values
    size_t num_points
    size_t num_threads
    Failure* failures  # one a thread


cdef void work(size_t index, void* context) noexcept nogil:
    """Evaluates every num_threads-th point, beginning with `index`."""
    cdef Task* task = <Task*>context
    cdef Failure* failure = &task.failures[index]
    cdef size_t size = task.spec.input_elements[0]
    cdef double value = 0
    cdef Input inputs[1]
    cdef void* outputs[2]
    cdef Call* prepared
    cdef size_t row = index
    cdef int failed = 0
    inputs[0] = Input(task.points, PJRT_Buffer_Type_F64, size)
    outputs[0], outputs[1] = &value, NULL
    clear_error()
    prepared = prepare(task.spec, inputs, outputs, True)
    failed = prepared == NULL
    while row < task.num_points and not failed:
        failed = rebind(prepared, 0, task.points + row * size) or call(prepared)
        task.values[row] = value
        row += task.num_threads
    failure.code = last_error_code()
    last_error(failure.message, sizeof(failure.message))
    discard(prepared)


def evaluate(executable, const double[:, ::1] points, size_t num_threads):
    """Return the value at each row of `points`.

    This thread waits for `num_threads` others that share the rows, and keeps the GIL.
    """
    cdef Task task
    cdef vector[Failure] failures = vector[Failure](num_threads)
    values = np.empty(points.shape[0])
    cdef double[::1] values_view = values
    task.spec = program_spec(executable)
    if task.spec.num_inputs != 1 or task.spec.num_outputs != 2:
        raise ValueError("the function must take a vector and return its value and its gradient")
    if task.spec.output_bytes[0] != itemsize(PJRT_Buffer_Type_F64):
        raise ValueError("the value of the function must be one double")
    if task.spec.input_elements[0] != <size_t>points.shape[1]:
        raise ValueError(f"the function takes {task.spec.input_elements[0]} numbers, not {points.shape[1]}")
    if task.spec.flags & NEEDS_PYTHON:
        raise ValueError("the function calls back into Python, which needs the GIL that this thread keeps")
    if num_threads < 1:
        raise ValueError("at least one thread is needed")
    task.points, task.values = &points[0, 0], &values_view[0]
    task.num_points, task.num_threads = points.shape[0], num_threads
    task.failures = failures.data()
    retain(task.spec)
    try:
        run_threads(num_threads, work, &task)
    finally:
        release(task.spec)
    for failure in failures:
        if failure.code != ERROR_NONE:
            raise RuntimeError(failure.message.decode("utf-8", "replace"))
    return values
