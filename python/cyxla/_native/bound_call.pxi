# SPDX-License-Identifier: Apache-2.0
# BoundCall: a program and the arrays that it reads and writes.


@cython.final
cdef class BoundCall:
    """A program bound to arrays, from `Executable.bind`: a call executes once and returns the same output arrays.

    With `fresh=True` of `bind`, each call returns new arrays, and `outputs` is None. For one thread at a time; bind
    once for each thread.
    """
    cdef Call* prepared              # NULL with fresh=True
    cdef Executable executable
    cdef _Arguments arguments
    cdef list bools                  # for each input the copy that the program reads instead, or None
    cdef readonly tuple inputs
    cdef readonly tuple outputs

    def __cinit__(self, maker=None):
        if maker is not _maker:
            raise TypeError("a BoundCall is made by cyxla.Executable.bind()")

    def __dealloc__(self):
        cdef Call* prepared = self.prepared
        if prepared != NULL:
            with nogil:
                core_discard(prepared)
            release_dropped()

    def __call__(self, *arguments):
        """Execute once and return the outputs; releases the GIL and raises ExecutionError as `Executable.run` does."""
        cdef InterruptibleWait wait
        cdef int result
        if arguments:
            raise TypeError(
                "a BoundCall takes no arguments; write into the arrays it is bound to (call.inputs[0][...] = x), or use"
                " Executable.run([x])"
            )
        outputs = self.outputs
        if self.prepared == NULL:
            outputs = self.executable.make_outputs()
            fill_outputs(outputs, self.arguments.outputs.data())
        if self.bools is not None:
            self.normalise()
        if self.executable.keeps_gil:
            result = self.execute()
        else:
            wait.begin(self.executable.wait_length, EXECUTING)
            if self.executable.spec.flags & CYXLA_NEEDS_PYTHON:
                begin_watched_call()
            with nogil:
                result = self.execute()
            wait.end()
            if self.executable.spec.flags & CYXLA_NEEDS_PYTHON:
                end_watched_call(result)
        if result != 0:
            raise_error()
        return outputs

    cdef int execute(self) noexcept nogil:
        if self.prepared != NULL:
            return core_call(self.prepared)
        return core_execute(
            self.executable.spec, self.arguments.inputs.data(), self.arguments.outputs.data(), True
        )

    cdef int copy_bools(self) except -1:
        """Makes the program read copies of bools, because the arrays may get other bytes than 0 and 1."""
        cdef Py_ssize_t i
        cdef _Arrays arrays = self.executable.inputs
        self.bools = [None] * len(self.inputs)
        for i in range(len(self.inputs)):
            if arrays.targets[i].element == kBool:
                copy = memory.aligned_empty(arrays.types[i].shape, arrays.dtypes[i])
                self.bools[i] = copy
                self.arguments.inputs[i].data = PyArray_DATA(<PyArrayObject*><PyObject*>copy)
        return 0

    cdef void normalise(self) noexcept:
        cdef Py_ssize_t i
        cdef PyObject* copy
        for i in range(len(self.bools)):
            copy = PyList_GET_ITEM_ptr(self.bools, i)
            if copy != <PyObject*>None:
                normalise_bools(
                    PyArray_DATA(<PyArrayObject*>PyTuple_GET_ITEM_ptr(self.inputs, i)),
                    self.arguments.inputs[i].num_elements,
                    PyArray_DATA(<PyArrayObject*>copy),
                )

    def __reduce__(self):
        raise TypeError("a BoundCall belongs to its process and its arrays and cannot be pickled or copied; bind anew")

    def __repr__(self):
        return f"<cyxla.BoundCall of {self.executable!r}>"
