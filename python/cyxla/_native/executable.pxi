# SPDX-License-Identifier: Apache-2.0
# Executable: converts NumPy arrays to the core's inputs and outputs, and executes.
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_GET_ITEM
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

# Up to this many inputs or outputs are described on the stack.
cdef enum:
    MAX_ON_STACK = 32

cdef const char* EXECUTING = b"\ncyxla: Ctrl-C is noted; it takes effect once the execution has ended\n"

# The dtypes that issue a warning when narrowed.
cdef dict NAMES_OF_WIDE = {kS64: "int64", kU64: "uint64", kF64: "float64", kC128: "complex128"}


cdef class _Arguments:
    """Memory for more inputs or outputs than fit on the stack."""
    cdef vector[Input] inputs
    cdef vector[void*] outputs


# Cython does not check `self`: Executable.run(None, []) would read invalid memory.
cdef int check_self(object self, str method) except -1:
    if not isinstance(self, Executable):
        raise TypeError(
            f"Executable.{method} needs a cyxla.Executable as its first argument, got {type(self).__name__}"
        )
    return 0


# Only this module has this object: an Executable or BoundCall made elsewhere would not have a program.
cdef object _maker = object()


@cython.final
cdef class Executable:
    """A compiled program, from `compile_program`; any number of threads may run it at once.

    This object, each `BoundCall` of it and each retained spec own the compiled program.
    """
    cdef const ProgramSpec* spec
    cdef _Arrays inputs
    cdef _Arrays outputs
    cdef readonly str name
    cdef readonly str route_reason
    cdef object measured             # statistics
    cdef bint keeps_gil
    cdef bint warned                 # whether narrowing was warned of
    cdef WaitLength wait_length      # of its last call
    cdef object __weakref__

    def __cinit__(self, maker=None):
        if maker is not _maker:
            raise TypeError("an Executable is made by cyxla.compile_program()")

    def __dealloc__(self):
        cdef const ProgramSpec* spec = self.spec
        if spec != NULL:
            # Destroying may wait for another thread that needs the GIL.
            with nogil:
                core_drop(spec)
            release_dropped()

    def __call__(self, *arguments, **keywords):
        raise TypeError("an Executable is not callable; pass its arguments in a list: executable.run([x])")

    def __reduce__(self):
        raise TypeError(
            "an Executable belongs to its process and cannot be pickled or copied; pickle the Program and compile it"
            " in the other process"
        )

    def __repr__(self):
        inputs = ", ".join(map(str, self.input_types))
        outputs = ", ".join(map(str, self.output_types))
        return f"<cyxla.Executable {self.name}: ({inputs}) -> ({outputs})>"

    @property
    def route(self):
        """The route of executions: 'pjrt', through PJRT_LoadedExecutable_Execute, or 'direct'. See `route_reason`."""
        return "direct" if self.spec.route == CYXLA_ROUTE_DIRECT else "pjrt"

    @property
    def statistics(self):
        """The `CompileStatistics` of the compilation, as `compile_program` returned them."""
        return self.measured

    @property
    def input_types(self):
        """Element type and shape of each input: a tuple of `ArrayType`."""
        return self.inputs.types

    @property
    def output_types(self):
        """Element type and shape of each output: a tuple of `ArrayType`."""
        return self.outputs.types

    @property
    def input_bytes(self):
        """Size of each input in bytes."""
        return tuple(self.spec.input_bytes[i] for i in range(self.spec.num_inputs))

    @property
    def output_bytes(self):
        """Size of each output in bytes."""
        return tuple(self.spec.output_bytes[i] for i in range(self.spec.num_outputs))

    def run(self, arrays, out=None):
        """Execute the program once and return its outputs.

        Releases the GIL, except for a direct call of an estimated two microseconds or less.

        Args:
            arrays: a list or tuple with one array for each input, with any strides and byte order. Dtypes are
                converted by NumPy's same_kind rule (integers only if every value fits), Python scalars and lists
                to the declared dtype. Nothing is broadcast.
            out: destinations of the results: a list or tuple with a C-contiguous writable array of the exact dtype
                and shape for each output, or None to drop an output. By default new arrays are made.

        Returns:
            A tuple with one C-contiguous array for each output, or the entries of `out`.

        Raises:
            ArgumentError: an array is invalid; the message has its index, and the expected and the given type.
            ExecutionError: the execution failed; the message has the PJRT function, its code and the plugin's message.
                A host callback's exception is its `__cause__`.
        """
        cdef Input stack_inputs[MAX_ON_STACK]
        cdef void* stack_outputs[MAX_ON_STACK]
        cdef Input* inputs = stack_inputs
        cdef void** outputs = stack_outputs
        check_self(self, "run")
        cdef size_t num_inputs = self.spec.num_inputs
        cdef size_t num_outputs = self.spec.num_outputs
        cdef _Arguments large
        cdef Arena arena
        cdef const ProgramSpec* spec = self.spec
        cdef InterruptibleWait wait
        cdef int result
        if num_inputs > MAX_ON_STACK or num_outputs > MAX_ON_STACK:
            large = _Arguments()
            large.inputs.resize(num_inputs)
            large.outputs.resize(num_outputs)
            inputs = large.inputs.data()
            outputs = large.outputs.data()
        arguments = self.inputs.as_tuple(arrays)
        converted = self.fill_inputs(arguments, inputs, arena)
        results = self.make_outputs() if out is None else self.check_outputs(out)
        fill_outputs(results, outputs)
        if self.keeps_gil:
            result = core_execute(spec, inputs, outputs, True)
        else:
            wait.begin(self.wait_length, EXECUTING)
            if spec.flags & CYXLA_NEEDS_PYTHON:
                begin_watched_call()
            with nogil:
                result = core_execute(spec, inputs, outputs, True)
            wait.end()
            if spec.flags & CYXLA_NEEDS_PYTHON:
                end_watched_call(result)
        if result != 0:
            raise_error()
        return results

    def bind(self, inputs, outputs=None, *, bint fresh=False):
        """Return a `BoundCall`, which reads and writes the memory of fixed arrays at each call.

        Args:
            inputs: a list or tuple of C-contiguous arrays of the exact dtypes and shapes. Each call reads them in
                place, so write new values into them. Memory at 64-byte-aligned addresses is not copied, except for
                bools.
            outputs: as `out` of `run`; new arrays by default. They may overlap the inputs.
            fresh: return new arrays at each call. By default each call returns the same arrays with new values, so
                copy the results to keep them.

        Returns:
            A `BoundCall` for one thread at a time.

        Raises:
            ArgumentError: an array would have to be converted, or `outputs` is given with `fresh=True`.
        """
        check_self(self, "bind")
        cdef Py_ssize_t i
        cdef BoundCall bound = BoundCall.__new__(BoundCall, _maker)
        if fresh and outputs is not None:
            raise errors.ArgumentError(
                "outputs must be None with fresh=True, which makes new arrays at each call; leave one of the two out"
            )
        bound.inputs = self.inputs.as_tuple(inputs)
        bound.executable = self
        bound.arguments = _Arguments()
        bound.arguments.inputs.resize(self.spec.num_inputs)
        bound.arguments.outputs.resize(self.spec.num_outputs)
        for i in range(len(bound.inputs)):
            self.inputs.check_exact(i, PyTuple_GET_ITEM_ptr(bound.inputs, i), False)
            self.fill_input(i, PyTuple_GET_ITEM_ptr(bound.inputs, i), bound.arguments.inputs.data())
        if self.inputs.has_bools:
            bound.copy_bools()
        if fresh:
            return bound
        bound.outputs = self.make_outputs() if outputs is None else self.check_outputs(outputs)
        fill_outputs(bound.outputs, bound.arguments.outputs.data())
        bound.prepared = core_prepare(self.spec, bound.arguments.inputs.data(), bound.arguments.outputs.data(), True)
        if bound.prepared == NULL:
            raise_error()
        return bound

    def warm_up(self, inputs=None, calls=3):
        """Execute the program on this thread and drop the results, because a thread's first call is slow.

        Call it on the thread that will execute; in native code, call `execute` or `call` instead. Host callbacks of
        the program run too.

        Args:
            inputs: as `arrays` of `run`; zeros by default. Give real values if a loop would not end for zeros.
            calls: the number of calls, at least 1.

        Raises:
            ArgumentError: as for `run`, or `calls` is not an int of at least 1.
            ExecutionError: as for `run`.
        """
        check_self(self, "warm_up")
        if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
            raise errors.ArgumentError(f"calls must be an int of at least 1, got {calls!r}")
        if inputs is None:
            inputs = [memory.aligned_empty(type_.shape, type_.dtype) for type_ in self.inputs.types]
            for array in inputs:
                array.fill(0)
        for _ in range(calls):
            self.run(inputs)
            PyErr_CheckSignals()

    cdef list fill_inputs(self, tuple arguments, Input* inputs, Arena& arena):
        """Describes the arguments to the core; returns the owner of converted arrays that are not in `arena`."""
        cdef Py_ssize_t i
        cdef PyObject* array
        cdef list converted = None
        cdef Element source = kOther
        cdef int ran_code = False
        cdef int is_known = False
        cdef uint64_t known = 0          # a bit for each input at an address that other code may free
        cdef JaxArrayAddress* address
        for i in range(len(arguments)):
            array = PyTuple_GET_ITEM_ptr(arguments, i)
            inputs[i].data = NULL
            if self.inputs.fits(i, array):
                continue
            # Without the GIL, another thread may delete a jax.Array that the call does not own.
            address = &self.inputs.known[i] if self.keeps_gil and i < 64 else NULL
            inputs[i].data = convert_argument(
                array, self.inputs.targets[i], arena, address, source, ran_code, is_known
            )
            if is_known:
                known |= <uint64_t>1 << i
            if inputs[i].data == NULL:
                if converted is None:
                    converted = list(arguments)
                converted[i] = self.convert(i, <object>array)
                ran_code = True
            elif not self.warned and is_narrowing(source, self.inputs.targets[i]):
                self.warn_of_narrowing(i, NAMES_OF_WIDE[source])
                ran_code = True
        if ran_code and known != 0:
            for i in range(min(len(arguments), 64)):
                if known >> i & 1:
                    array = PyTuple_GET_ITEM_ptr(arguments, i)
                    inputs[i].data = convert_argument(
                        array, self.inputs.targets[i], arena, NULL, source, ran_code, is_known
                    )
                    if inputs[i].data == NULL:
                        if converted is None:
                            converted = list(arguments)
                        converted[i] = self.convert(i, <object>array)
        # Converting may run other code, so addresses are read after the last conversion.
        for i in range(len(arguments)):
            if inputs[i].data == NULL:
                array = PyTuple_GET_ITEM_ptr(arguments, i) if converted is None else PyList_GET_ITEM_ptr(converted, i)
                if ran_code:
                    self.inputs.check_exact(i, array, False)
                inputs[i].data = PyArray_DATA(<PyArrayObject*>array)
            inputs[i].element_type = self.spec.input_types[i]
            inputs[i].num_elements = self.spec.input_elements[i]
        if self.inputs.has_bools:
            self.normalise(inputs, arena)
        return converted

    cdef object convert(self, Py_ssize_t i, object value):
        """Converts a value with NumPy, or raises the error with the reason."""
        type_ = self.inputs.types[i]
        source = dtypes.read(value, type_, self.inputs.where(i))
        if not self.warned and not dtypes.is_python_value(value) and dtypes.is_narrowing(source.dtype, type_.dtype):
            self.warn_of_narrowing(i, source.dtype.name)
        return dtypes.cast(source, type_.dtype)

    cdef int warn_of_narrowing(self, Py_ssize_t i, str given) except -1:
        self.warned = True
        declared = self.inputs.dtypes[i].name
        warnings.warn(
            f"{self.inputs.where(i)}: a {given} array is narrowed to {declared}, which the program declares, so numbers"
            f" may change; lower it for {given} (jax.ShapeDtypeStruct(shape, np.{given}), or np.ones(3) instead of"
            f" jnp.ones(3)), or pass .astype(np.{declared}). This program warns once",
            errors.NarrowingWarning,
            stacklevel=1,
        )
        return 0

    cdef int normalise(self, Input* inputs, Arena& arena) except -1:
        """Copies bool inputs that have other bytes than 0 and 1."""
        cdef Py_ssize_t i
        cdef char* copy
        for i in range(<Py_ssize_t>self.spec.num_inputs):
            if self.inputs.targets[i].element == kBool and not are_bools(inputs[i].data, inputs[i].num_elements):
                copy = arena.take(inputs[i].num_elements)
                if copy == NULL:
                    raise MemoryError()
                normalise_bools(inputs[i].data, inputs[i].num_elements, copy)
                inputs[i].data = copy
        return 0

    cdef void fill_input(self, Py_ssize_t i, PyObject* array, Input* inputs) noexcept:
        inputs[i].data = PyArray_DATA(<PyArrayObject*>array)
        inputs[i].element_type = self.spec.input_types[i]
        inputs[i].num_elements = self.spec.input_elements[i]

    cdef tuple make_outputs(self):
        cdef Py_ssize_t i
        cdef Py_ssize_t count = <Py_ssize_t>self.spec.num_outputs
        cdef tuple results = PyTuple_New(count)
        for i in range(count):
            array = self.outputs.empty(i)
            Py_INCREF(array)
            PyTuple_SET_ITEM(results, i, array)
        return results

    cdef tuple check_outputs(self, object out):
        cdef Py_ssize_t i
        cdef tuple results = self.outputs.as_tuple(out)
        for i in range(len(results)):
            if results[i] is not None:
                self.outputs.check_exact(i, PyTuple_GET_ITEM_ptr(results, i), True)
        self.outputs.check_disjoint(results, self.spec.output_bytes)
        return results


cdef PyObject* PyList_GET_ITEM_ptr(list items, Py_ssize_t i) noexcept:
    return <PyObject*>PyList_GET_ITEM(items, i)


cdef void fill_outputs(tuple results, void** outputs) noexcept:
    cdef Py_ssize_t i
    for i in range(len(results)):
        outputs[i] = NULL if results[i] is None else PyArray_DATA(<PyArrayObject*>PyTuple_GET_ITEM_ptr(results, i))


cdef int raise_error() except -1:
    raise_last_error()
    return -1


def set_statistics(Executable executable not None, statistics):
    """Set `Executable.statistics`; for `cyxla.compilation`."""
    executable.measured = statistics


cdef object make_executable(const ProgramSpec* spec, request, const string& route_reason, bint is_short):
    """Returns an Executable that takes the caller's reference to a compiled program; on failure the caller keeps it."""
    program = request.program
    cdef Executable executable = Executable.__new__(Executable, _maker)
    executable.name = program.name
    executable.inputs = _Arrays(
        tuple([array.array_type for array in program.inputs]), [array.name for array in program.inputs], "argument"
    )
    executable.outputs = _Arrays(tuple([array.array_type for array in program.outputs]), None, "output")
    executable.outputs.aligned = len(request.destinations) > 0
    executable.route_reason = route_reason.decode("utf-8", "replace")
    executable.keeps_gil = is_short and not spec.flags & CYXLA_NEEDS_PYTHON
    executable.spec = spec
    return executable
