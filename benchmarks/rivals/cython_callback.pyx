# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The usual callback of a solver: C calls Cython, which takes the GIL and calls a jitted function."""
cimport numpy as cnp
from cpython.ref cimport PyObject
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

import numpy as np

cnp.import_array()


cdef class Callback:
    """Wraps the solver's memory in arrays, calls the function, copies the results out."""
    cdef object function
    cdef list inputs, outputs, shapes
    cdef readonly str failure

    def __init__(self, function, inputs, outputs):
        self.function = function
        self.inputs = inputs
        self.outputs = outputs
        self.failure = ""

    @property
    def step(self):
        return <uintptr_t>&step

    @property
    def state(self):
        return <uintptr_t><PyObject*>self

    cdef int call(self) except -1:
        cdef cnp.ndarray like, array, result, output
        arguments = []
        for like in self.inputs:
            # A solver passes pointers, so each call makes the arrays.
            array = cnp.PyArray_SimpleNewFromData(
                cnp.PyArray_NDIM(like), cnp.PyArray_DIMS(like), cnp.PyArray_TYPE(like), cnp.PyArray_DATA(like)
            )
            arguments.append(array)
        results = self.function(*arguments)
        for i in range(len(self.outputs)):
            result = np.asarray(results[i])
            output = self.outputs[i]
            memcpy(cnp.PyArray_DATA(output), cnp.PyArray_DATA(result), cnp.PyArray_NBYTES(output))
        return 0


cdef int step(void* state) noexcept with gil:
    callback = <Callback><object><PyObject*>state
    try:
        return callback.call()
    except BaseException as error:
        callback.failure = repr(error)
        return -1
