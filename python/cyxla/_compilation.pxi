# SPDX-License-Identifier: Apache-2.0
# Compiling and loading programs: from what cyxla.compilation has to the core and back.

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


cdef vector[string] core_names(names) except *:
    # Backslashes stand for what UTF-8 cannot encode: half of a surrogate pair.
    cdef vector[string] result
    for name in names or ():
        result.push_back(<string>name.encode("utf-8", "backslashreplace"))
    return result


cdef Signature core_signature(
    str name, tuple inputs, tuple outputs, input_names, output_names, bint needs_python, in_place_outputs
) except *:
    cdef Signature signature
    signature.name = name.encode()
    signature.input_names = core_names(input_names)
    signature.output_names = core_names(output_names)
    signature.inputs = core_types(inputs)
    signature.outputs = core_types(outputs)
    signature.needs_python = needs_python
    signature.in_place_outputs = tuple(in_place_outputs)
    return signature


cdef RouteRequest core_route(str route, str reason, bint may_fork) except *:
    cdef RouteRequest request
    request.route = Route.kAuto if route == "auto" else Route.kDirect if route == "direct" else Route.kPjrt
    request.reason = reason.encode()
    request.may_fork = may_fork
    return request


cdef object executable_of(Program* program, str name, tuple inputs, tuple outputs, input_names, bint in_place):
    return make_executable(
        &program.spec(), name, inputs, outputs, input_names, in_place,
        program.route_reason().decode("utf-8", "replace"), program.is_short(),
    )


def compile_code(
    bytes code, str code_format, overrides, str name, inputs, outputs, bint needs_python, input_names=None,
    in_place_outputs=(), str route="pjrt", str route_reason="", bint may_fork=True, *, output_names=None,
    bytes debug_options=b"", host_callbacks=None, bint keep=False,
):
    """Compile a program with the loaded plugin.

    `in_place_outputs` are the outputs for which the code takes a donated destination after its inputs, in that order.
    `route` is 'auto', 'pjrt' (then for `route_reason`) or 'direct'; `may_fork` allows to try a program in a child
    process. `debug_options` are those of XLA, serialized, which must be of the plugin's own version; empty for its own.
    `host_callbacks` is what must live for as long as the program can run.
    Returns the Executable and a dict of statistics, None where the plugin does not tell. With `keep` there are two
    entries more, for `load_code`: 'serialized', empty when the plugin cannot serialize, and 'marks_donation'.
    """
    cdef Runtime* runtime = need_runtime()
    cdef Program* program
    cdef OptionOverrides core_overrides
    cdef CoreStatistics statistics
    cdef string core_code = code
    cdef string core_debug_options = debug_options
    cdef string core_format = code_format.encode()
    cdef string serialized
    inputs, outputs, in_place_outputs = tuple(inputs), tuple(outputs), tuple(in_place_outputs)
    cdef Signature signature = core_signature(
        name, inputs, outputs, input_names, output_names, needs_python, in_place_outputs
    )
    cdef RouteRequest request = core_route(route, route_reason, may_fork)
    if host_callbacks is not None:
        signature.host_callbacks = shared_reference(host_callbacks)
    for option, value in overrides.items():
        set_override(core_overrides, option, value)
    cdef WaitLength length
    cdef InterruptibleWait wait
    wait.begin(length, b"\ncyxla: Ctrl-C is noted; it takes effect once the plugin has compiled the program\n")
    try:
        with nogil:
            program = runtime.compile(
                core_code, core_format, core_overrides, signature, statistics, request,
                core_debug_options, &serialized if keep else NULL,
            )
    finally:
        wait.end()
    executable = executable_of(program, name, inputs, outputs, input_names, len(in_place_outputs) > 0)
    measured = {
        "seconds": statistics.seconds,
        "program_bytes": len(code),
        "code_bytes": optional_to_python(statistics.memory.code_bytes),
        "argument_bytes": optional_to_python(statistics.memory.argument_bytes),
        "output_bytes": optional_to_python(statistics.memory.output_bytes),
        "temporary_bytes": optional_to_python(statistics.memory.temporary_bytes),
        "flops": optional_to_python(statistics.flops),
        "instructions": optional_to_python(statistics.instructions),
    }
    if keep:
        measured["serialized"] = <bytes>serialized
        measured["marks_donation"] = program.signature().marks_donation
    return executable, measured


def load_code(
    bytes serialized, str name, inputs, outputs, bint marks_donation, input_names=None, in_place_outputs=(),
    str route="pjrt", str route_reason="", bint may_fork=True, *, output_names=None,
):
    """An Executable from what `compile_code` kept, made by this plugin; the other arguments are those given there.

    The bytes are machine code, and they run. Raises Error when the plugin refuses them.
    """
    cdef Runtime* runtime = need_runtime()
    cdef Program* program
    cdef string core_serialized = serialized
    inputs, outputs, in_place_outputs = tuple(inputs), tuple(outputs), tuple(in_place_outputs)
    cdef Signature signature = core_signature(
        name, inputs, outputs, input_names, output_names, False, in_place_outputs
    )
    cdef RouteRequest request = core_route(route, route_reason, may_fork)
    signature.marks_donation = marks_donation
    cdef WaitLength length
    cdef InterruptibleWait wait
    wait.begin(length, b"\ncyxla: Ctrl-C is noted; it takes effect once the plugin has loaded the program\n")
    try:
        with nogil:
            program = runtime.load_compiled(core_serialized, signature, request)
    finally:
        wait.end()
    return executable_of(program, name, inputs, outputs, input_names, len(in_place_outputs) > 0)


def program_facts(Executable executable not None):
    """What the plugin made of a program that is executed through PJRT, as a dict; None where that cannot be read.

    'products' are tuples of XLA's element type, batch, m, k, n, and whether each operand is transposed; 'obstacles'
    say what keeps the program off the direct route besides them; 'instructions' counts the optimized module's;
    'work' is the estimate of work.h.
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
