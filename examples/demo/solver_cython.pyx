# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The solver of solver_cpp.cpp in Cython: its loop runs on a std::thread, without the GIL."""

from libc.math cimport fmax, sqrt
from libc.string cimport memcpy, strcpy

from cyxla._pjrt cimport PJRT_Buffer_Type_F64
from cyxla._runtime cimport (
    ABI_VERSION,
    Input,
    ProgramSpec,
    aligned_memory,
    execute,
    free_aligned,
    last_error,
    program_spec,
)

import cyxla

cyxla.check_abi(ABI_VERSION)

cdef enum:
    MAX_EVALUATIONS = 1000
    NUM_RECENT = 10

cdef double TOLERANCE = 1e-6  # length of the gradient at the minimum


# A program (point, features, labels) -> (value, gradient) with its arrays. Used by one thread.
cdef struct Problem:
    const ProgramSpec* spec
    size_t size
    double* point
    double* gradient
    double* origin  # the last accepted point
    double* slope  # the gradient there
    double value
    Input inputs[3]
    void* outputs[2]
    int evaluations
    char message[1024]  # the reason of a failure; empty on success


cdef extern from "<thread>" namespace "std" nogil:
    cdef cppclass thread:
        thread()
        thread(void (*function)(Problem*) noexcept nogil, Problem* argument) except +
        void join() except +


cdef class Array:
    """A copy of doubles at an address that programs read in place."""
    cdef double* values
    cdef size_t size

    def __dealloc__(self):
        free_aligned(self.values)

    cdef Input input(self):
        return Input(self.values, PJRT_Buffer_Type_F64, self.size)


cdef Array copy(const double* values, size_t size):
    cdef Array array = Array()
    array.size = size
    array.values = <double*>aligned_memory(size * sizeof(double))
    if array.values == NULL:
        raise MemoryError()
    memcpy(array.values, values, size * sizeof(double))
    return array


def minimize(
    executable,
    double[::1] parameters not None,
    const double[:, ::1] features not None,
    const double[::1] labels not None,
):
    """Minimise on a thread without the GIL and return (value, evaluations).

    The arrays are float64; `parameters` is the start, and the minimum afterwards.
    """
    cdef Array point = copy(&parameters[0], parameters.size)
    cdef Array gradient = copy(&parameters[0], parameters.size)
    cdef Array origin = copy(&parameters[0], parameters.size)
    cdef Array slope = copy(&parameters[0], parameters.size)
    cdef Array aligned_features = copy(&features[0, 0], features.size)
    cdef Array aligned_labels = copy(&labels[0], labels.size)
    cdef Problem problem
    cdef thread solver
    problem.spec = program_spec(executable)
    problem.size = point.size
    problem.point = point.values
    problem.gradient = gradient.values
    problem.origin = origin.values
    problem.slope = slope.values
    problem.inputs[:] = [point.input(), aligned_features.input(), aligned_labels.input()]
    problem.outputs[:] = [&problem.value, problem.gradient]
    problem.evaluations = 0
    problem.message[0] = 0
    check_signature(&problem)
    with nogil:
        solver = thread(run, &problem)
        solver.join()
    if problem.message[0] != 0:
        raise RuntimeError(problem.message.decode("utf-8", "replace"))
    memcpy(&parameters[0], point.values, parameters.nbytes)
    return problem.value, problem.evaluations


cdef int check_signature(const Problem* problem) except -1:
    """Check the numbers of inputs and outputs, which `execute` cannot check."""
    cdef const ProgramSpec* spec = problem.spec
    if (
        spec.num_inputs != 3
        or spec.num_outputs != 2
        or spec.output_types[0] != PJRT_Buffer_Type_F64
        or spec.output_bytes[0] != sizeof(double)
        or spec.output_bytes[1] != problem.size * sizeof(double)
    ):
        raise ValueError("the program must take three arrays and return a value and a gradient")
    return 0


# The functions below run without Python.

cdef void run(Problem* problem) noexcept nogil:
    if minimize_problem(problem) != 0 and problem.message[0] == 0:
        last_error(problem.message, sizeof(problem.message))


cdef int evaluate(Problem* problem) noexcept nogil:
    problem.evaluations += 1
    return execute(problem.spec, problem.inputs, problem.outputs, True)


cdef double dot(const double* a, const double* b, size_t size) noexcept nogil:
    cdef double total = 0
    cdef size_t i
    for i in range(size):
        total += a[i] * b[i]
    return total


# Gradient descent with Barzilai-Borwein step lengths. A step is halved until the value is below the
# largest of the last ten.
cdef int minimize_problem(Problem* problem) noexcept nogil:
    cdef size_t i, size = problem.size
    cdef int k, iteration = 0
    cdef double recent[NUM_RECENT]
    cdef double step, bound, decrease, moved, distance, curvature
    if evaluate(problem) != 0:
        return -1
    memcpy(problem.slope, problem.gradient, size * sizeof(double))
    for k in range(NUM_RECENT):
        recent[k] = problem.value
    step = 1 / sqrt(dot(problem.slope, problem.slope, size))
    while not sqrt(dot(problem.slope, problem.slope, size)) <= TOLERANCE:  # NaN continues
        bound = recent[0]
        for k in range(NUM_RECENT):
            bound = fmax(bound, recent[k])
        decrease = 1e-4 * dot(problem.slope, problem.slope, size)
        while True:
            if problem.evaluations == MAX_EVALUATIONS:
                strcpy(problem.message, b"no minimum after 1000 evaluations")
                return -1
            for i in range(size):
                problem.point[i] = problem.origin[i] - step * problem.slope[i]
            if evaluate(problem) != 0:
                return -1
            if problem.value <= bound - step * decrease:
                break
            step /= 2
        distance = curvature = 0
        for i in range(size):
            moved = problem.point[i] - problem.origin[i]
            distance += moved * moved
            curvature += moved * (problem.gradient[i] - problem.slope[i])
            problem.origin[i] = problem.point[i]
            problem.slope[i] = problem.gradient[i]
        step = distance / curvature
        recent[iteration % NUM_RECENT] = problem.value
        iteration += 1
    return 0
