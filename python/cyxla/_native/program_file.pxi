# SPDX-License-Identifier: Apache-2.0
# Reads and writes program files, without a plugin or JAX.


cdef vector[CoreNamedArray] core_arrays(arrays) except *:
    cdef vector[CoreNamedArray] result
    cdef CoreNamedArray entry
    for name, element_type, shape in arrays:
        entry.name = name.encode()
        entry.type.element_type = element_type
        entry.type.dimensions = shape
        result.push_back(entry)
    return result


cdef tuple arrays_to_python(vector[CoreNamedArray]& arrays):
    return tuple([
        (entry.name.decode(), entry.type.element_type, tuple(entry.type.dimensions)) for entry in arrays
    ])


def write_program_file(
    str name, str platform, bytes artifact, str text, inputs, outputs, custom_call_targets, flops,
    str stablehlo_version, str jax_version, str cyxla_version,
):
    """Return the bytes of a program file; each of `inputs` and `outputs` is (name, element type, shape)."""
    cdef CoreProgramFile program
    program.name = name.encode()
    program.platform = platform.encode()
    program.artifact = artifact
    program.text = text.encode()
    program.inputs = core_arrays(inputs)
    program.outputs = core_arrays(outputs)
    for target in custom_call_targets:
        program.custom_call_targets.push_back(<string>target.encode())
    if flops is not None:
        set_optional(program.flops, <double>flops)
    program.stablehlo_version = stablehlo_version.encode()
    program.jax_version = jax_version.encode()
    program.cyxla_version = cyxla_version.encode()
    cdef string file
    with nogil:
        file = core_write_program_file(program)
    return <bytes>file


def read_program_file(bytes content):
    """Return a program file's content as a dict of the arguments of `write_program_file`.

    Raises ArgumentError if it is not a valid program file.
    """
    cdef string_view file = string_view(<const char*>content, <size_t>len(content))
    cdef CoreProgramFile program
    with nogil:
        program = core_read_program_file(file)
    try:
        return {
            "name": program.name.decode(),
            "platform": program.platform.decode(),
            "artifact": <bytes>program.artifact,
            "text": program.text.decode(),
            "inputs": arrays_to_python(program.inputs),
            "outputs": arrays_to_python(program.outputs),
            "custom_call_targets": tuple([target.decode() for target in program.custom_call_targets]),
            "flops": optional_to_python(program.flops),
            "stablehlo_version": program.stablehlo_version.decode(),
            "jax_version": program.jax_version.decode(),
            "cyxla_version": program.cyxla_version.decode(),
        }
    except UnicodeDecodeError as error:
        raise errors.ArgumentError(f"a text in it is not UTF-8: {error}") from None
