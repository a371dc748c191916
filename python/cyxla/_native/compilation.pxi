# SPDX-License-Identifier: Apache-2.0
# Compiles and loads programs for cyxla.compilation.

cdef int set_override(OptionOverrides& overrides, str name, object value) except -1:
    cdef string key = name.encode()
    if isinstance(value, bool):
        set_value[OptionOverrides, cpp_bool](overrides, key, value)
    elif isinstance(value, int):
        set_value[OptionOverrides, int64_t](overrides, key, value)
    elif isinstance(value, float):
        set_value[OptionOverrides, double](overrides, key, value)
    elif isinstance(value, str):
        set_value[OptionOverrides, string](overrides, key, value.encode())
    else:
        raise errors.ArgumentError(
            f"the compile option {name!r} must be a bool, int, float or str, not {type(value).__name__}"
        )
    return 0


cdef vector[CoreArrayType] core_types(types) except *:
    cdef vector[CoreArrayType] result
    cdef CoreArrayType entry
    for type_ in types:
        entry.element_type = type_.element_type
        entry.dimensions = type_.shape
        result.push_back(entry)
    return result


cdef vector[string] core_names(arrays) except *:
    # Backslashes stand for what UTF-8 cannot encode: half of a surrogate pair.
    cdef vector[string] result
    for array in arrays:
        result.push_back(<string>array.name.encode("utf-8", "backslashreplace"))
    return result


cdef Signature core_signature(request, bint marks_donation) except *:
    cdef Signature signature
    program = request.program
    signature.name = program.name.encode()
    signature.inputs = core_types([array.array_type for array in program.inputs])
    signature.outputs = core_types([array.array_type for array in program.outputs])
    signature.input_names = core_names(program.inputs)
    signature.output_names = core_names(program.outputs)
    signature.needs_python = program.needs_python
    signature.marks_donation = marks_donation
    signature.in_place_outputs = request.destinations
    if program.host_callbacks is not None:
        signature.host_callbacks = shared_reference(program.host_callbacks)
    return signature


cdef RouteRequest core_route(request) except *:
    cdef RouteRequest route
    route.route = (
        Route.kAuto if request.route == "auto" else Route.kDirect if request.route == "direct" else Route.kPjrt
    )
    route.reason = request.reason.encode()
    route.may_fork = request.may_fork
    return route


cdef CoreRequest core_request(request, bytes code, bint marks_donation=False) except *:
    cdef CoreRequest core
    settings = request.settings
    core.code = code
    core.format = b"mlir"
    for name, value in settings.overrides.items():
        set_override(core.overrides, name, value)
    core.base_options = settings.base_options
    core.signature = core_signature(request, marks_donation)
    core.route = core_route(settings.route)
    core.keeps_serialized = request.keeps_serialized
    return core


class Measured(NamedTuple):
    """The cost of a compilation and the plugin's statistics; see `CompileStatistics`."""

    seconds: float
    program_bytes: int
    code_bytes: int | None
    argument_bytes: int | None
    output_bytes: int | None
    temporary_bytes: int | None
    flops: float | None
    instructions: int | None


class Compiled(NamedTuple):
    """The result of `compile_code` and `load_code`.

    `serialized` is for `load_code`; it is empty if the request does not ask for it or the plugin cannot serialize.
    `marks_donation` is true if the code allows an input to be donated.
    """

    executable: Executable
    measured: Measured
    serialized: bytes
    marks_donation: bool


cdef object compiled_to_python(CoreCompiled& compiled, request, size_t program_bytes):
    cdef const CoreStatistics* statistics = &compiled.statistics
    cdef const MemoryStatistics* memory = &statistics.memory
    cdef Program* program = compiled.program.get()
    marks_donation = program.signature().marks_donation
    executable = make_executable(&program.spec(), request, program.route_reason(), program.is_short())
    compiled.program.release()  # the Executable owns the reference
    measured = Measured(
        seconds=statistics.seconds,
        program_bytes=program_bytes,
        code_bytes=optional_to_python(memory.code_bytes),
        argument_bytes=optional_to_python(memory.argument_bytes),
        output_bytes=optional_to_python(memory.output_bytes),
        temporary_bytes=optional_to_python(memory.temporary_bytes),
        flops=optional_to_python(statistics.flops),
        instructions=optional_to_python(statistics.instructions),
    )
    return Compiled(executable, measured, <bytes>compiled.serialized, marks_donation)


def compile_code(request, bytes code):
    """Compile MLIR bytecode or text for a `cyxla.compilation.settings.CompileRequest`."""
    cdef Runtime* runtime = need_runtime()
    cdef CoreRequest core = core_request(request, code)
    cdef CoreCompiled compiled
    cdef WaitLength length
    cdef InterruptibleWait wait
    wait.begin(length, b"\ncyxla: Ctrl-C is noted; it takes effect once the plugin has compiled the program\n")
    try:
        with nogil:
            compiled = runtime.compile(move(core))
    finally:
        wait.end()
    return compiled_to_python(compiled, request, len(code))


def load_code(request, bytes serialized, bint marks_donation):
    """Load an executable that `compile_code` serialized with this plugin for the same request.

    `marks_donation` is that of its result. The bytes are machine code that cyxla runs, so they must be trusted.
    Raises Error if the plugin refuses them.
    """
    cdef Runtime* runtime = need_runtime()
    cdef CoreRequest core = core_request(request, serialized, marks_donation)
    cdef CoreCompiled compiled
    cdef WaitLength length
    cdef InterruptibleWait wait
    wait.begin(length, b"\ncyxla: Ctrl-C is noted; it takes effect once the plugin has loaded the program\n")
    try:
        with nogil:
            compiled = runtime.load_compiled(move(core))
    finally:
        wait.end()
    return compiled_to_python(compiled, request, 0)


def program_facts(Executable executable not None):
    """Return facts about the plugin's code for a program on the PJRT route; None if it cannot be read.

    'products' are tuples of XLA's element type, batch, m, k, n, and whether each operand is transposed; 'obstacles'
    are the other reasons against the direct route; 'instructions' counts the optimized module's instructions; 'work'
    is the estimate of work.h.
    """
    cdef const OptionalFacts* facts = &Program.of(executable.spec[0]).facts()
    if not facts.has_value():
        return None
    return {
        "products": [
            (<int>product.element_type, product.batch, product.m, product.k, product.n,
             product.is_lhs_transposed, product.is_rhs_transposed)
            for product in facts.value().products
        ],
        "obstacles": [obstacle.decode() for obstacle in facts.value().obstacles],
        "instructions": facts.value().num_instructions,
        "work": facts.value().work,
    }
