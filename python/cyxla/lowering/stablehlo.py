# SPDX-License-Identifier: Apache-2.0
"""Turns the MLIR modules that JAX lowers into portable artifacts with a checked signature.

Imports jax, so callers import this module on use. Serializing rewrites a module, and JAX keeps the
modules that it lowers, so they are cloned first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo

from cyxla.dtypes import ArrayType, ElementType
from cyxla.errors import LoweringError
from cyxla.program.program import Program
from cyxla.program.signature import identifier
from cyxla.program.versions import own_context, serialize

__all__ = [
    "Artifact",
    "Operation",
    "current_version",
    "is_array_type",
    "main_function",
    "operations_named",
    "parameter_attributes",
    "portable_artifact",
    "set_parameter_attributes",
    "with_destinations",
]

Operation: TypeAlias = Any  # mypy cannot follow the annotations of jaxlib's MLIR bindings

_ELEMENT_TYPES: Final = {
    "i1": ElementType.PRED,
    "i8": ElementType.S8,
    "i16": ElementType.S16,
    "i32": ElementType.S32,
    "i64": ElementType.S64,
    "ui8": ElementType.U8,
    "ui16": ElementType.U16,
    "ui32": ElementType.U32,
    "ui64": ElementType.U64,
    "f16": ElementType.F16,
    "f32": ElementType.F32,
    "f64": ElementType.F64,
    "bf16": ElementType.BF16,
    "complex<f32>": ElementType.C64,
    "complex<f64>": ElementType.C128,
    "f8E5M2": ElementType.F8E5M2,
    "f8E4M3FN": ElementType.F8E4M3FN,
    "f8E4M3B11FNUZ": ElementType.F8E4M3B11FNUZ,
    "f8E5M2FNUZ": ElementType.F8E5M2FNUZ,
    "f8E4M3FNUZ": ElementType.F8E4M3FNUZ,
    "f8E4M3": ElementType.F8E4M3,
    "f8E3M4": ElementType.F8E3M4,
    "f8E8M0FNU": ElementType.F8E8M0FNU,
}

# JAX's attributes of parameters that it adds to the declared ones.
_ADDED_PARAMETERS: Final = {
    "jax.token": "ordered effects (jax.token)",
    "jax.global_constant": "symbolic dimensions or several platforms (jax.global_constant)",
    "jax.const": "constants passed as arguments (jax.const)",
}

_ELIDED: Final = "<__elided__>"

_DONATION_ATTRIBUTES: Final = ("tf.aliasing_output", "jax.buffer_donor")


class Artifact(NamedTuple):
    """A module that a plugin can compile, and the types of its inputs, outputs and constants."""

    code: bytes
    version: str
    text: str
    custom_call_targets: tuple[str, ...]
    inputs: tuple[ArrayType, ...]
    outputs: tuple[ArrayType, ...]
    constants: tuple[ArrayType, ...]


def current_version() -> str:
    """Return the StableHLO version of the installed jaxlib, such as "1.17.0"."""
    return str(stablehlo.get_current_version())


def portable_artifact(
    module: ir.Module, name: str, edit: Callable[[Operation], object] | None = None
) -> Artifact:
    """Return the module as a portable artifact of jaxlib's version, renamed, without locations.

    Donation attributes are removed. `edit` may change the copy before its locations are removed.

    Raises:
        LoweringError: JAX added parameters to the declared ones, the module is for several
            devices, or a parameter or result has no element type. The caller adds the function's
            name to the message.
    """
    with module.context:
        own_module = _clone(module)
        clone: Operation = own_module.operation
        if edit is not None:
            edit(clone)
        # Old plugins cannot read newer kinds of locations.
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(clone)
        clone.attributes["sym_name"] = ir.StringAttr.get(identifier(name))
        main = main_function(clone)
        _refuse_several_devices(clone)
        _refuse_added_parameters(main)
        _remove_donation(main)
        function_type = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        inputs = tuple(_array_type(value, "parameter") for value in function_type.inputs)
        outputs = tuple(_array_type(value, "result") for value in function_type.results)
        text = clone.get_asm(enable_debug_info=False)
        version = current_version()
        targets = _custom_call_targets(clone)
        constants = _constants(clone)
        code = serialize(own_module, version)
        return Artifact(code, version, text, targets, inputs, outputs, constants)


def with_destinations(program: Program) -> tuple[Program, tuple[int, ...]]:
    """Return the program with a further parameter for each non-empty output, and these outputs.

    The parameters follow the declared ones and are not read. Each is aliased with its output: a
    caller that donates a buffer for it finds the result in that buffer.

    Raises:
        UnsupportedError: the installed jaxlib cannot read or write the program.
    """
    with (
        own_context(program, "given destinations for its outputs") as context,
        ir.Location.unknown(),
    ):
        module = stablehlo.deserialize_portable_artifact(context, program.stablehlo)
        root: Operation = module.operation
        main = main_function(root)
        function_type = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        inputs, results = list(function_type.inputs), list(function_type.results)
        attributes = parameter_attributes(main) or [{} for _ in inputs]
        outputs = tuple(i for i, array in enumerate(program.outputs) if array.size_bytes)
        index_type = ir.IntegerType.get_signless(32)
        for output in outputs:
            main.regions[0].blocks[0].add_argument(results[output], ir.Location.unknown())
            inputs.append(results[output])
            attributes.append({"tf.aliasing_output": ir.IntegerAttr.get(index_type, output)})
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        set_parameter_attributes(main, attributes)
        root.verify()
        text = root.get_asm(enable_debug_info=False)
        code = serialize(module, program.stablehlo_version)
        return dataclasses.replace(program, stablehlo=code, text=text), outputs


def _clone(module: ir.Module) -> ir.Module:
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return ir.Module.parse(bytecode.getvalue())


def main_function(module: Operation) -> Operation:
    """Return the function that a plugin executes."""
    for operation in module.regions[0].blocks[0].operations:
        name = operation.operation.attributes
        if "sym_name" in name and ir.StringAttr(name["sym_name"]).value == "main":
            return operation.operation
    raise LoweringError("JAX lowered it to a module without a main function")


def _refuse_several_devices(module: Operation) -> None:
    for attribute in ("mhlo.num_partitions", "mhlo.num_replicas"):
        if attribute in module.attributes:
            count = ir.IntegerAttr(module.attributes[attribute]).value
            if count != 1:
                raise LoweringError(
                    f"it is sharded over {count} devices ({attribute}), and a program runs on one;"
                    " remove the shardings and leave the mesh context before lowering"
                )


def parameter_attributes(main: Operation) -> list[dict[str, Any]]:
    """Return the attributes of each parameter; an empty list if none has any."""
    if "arg_attrs" not in main.attributes:
        return []
    return [{named.name: named.attr for named in entry} for entry in main.attributes["arg_attrs"]]


def _refuse_added_parameters(main: Operation) -> None:
    for index, attributes in enumerate(parameter_attributes(main)):
        for attribute, feature in _ADDED_PARAMETERS.items():
            if attribute in attributes:
                raise LoweringError(
                    f"JAX added parameter {index} to the declared ones for {feature}, and native"
                    " code would not know it; remove that feature from the function"
                )


def _remove_donation(main: Operation) -> None:
    kept = [
        {name: value for name, value in attributes.items() if name not in _DONATION_ATTRIBUTES}
        for attributes in parameter_attributes(main)
    ]
    if kept:
        set_parameter_attributes(main, kept)


def set_parameter_attributes(main: Operation, attributes: list[dict[str, Any]]) -> None:
    """Replace the attributes of all parameters."""
    entries = [ir.DictAttr.get(entry) for entry in attributes]
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)


def _array_type(value: ir.Type, side: str) -> ArrayType:
    if isinstance(value, ir.RankedTensorType):
        tensor = value
        element_type = _ELEMENT_TYPES.get(str(tensor.element_type))
        if element_type is not None and tensor.has_static_shape:
            return ArrayType(element_type, tuple(tensor.shape))
    raise LoweringError(f"a {side} has type {value}, which no array in host memory has")


def is_array_type(value: ir.Type) -> bool:
    """Return whether an array in host memory can have the type."""
    with contextlib.suppress(LoweringError):
        _array_type(value, "value")
        return True
    return False


def operations_named(root: Operation, *names: str) -> Iterator[Operation]:
    """Yield the operations inside `root` that have one of these names.

    Does not use MLIR's walk, which turns an exception from a signal handler, such as
    KeyboardInterrupt, into a RuntimeError.
    """
    outer = [root]
    while outer:
        for region in outer.pop().regions:
            for block in region.blocks:
                for view in block.operations:
                    operation = view.operation
                    if operation.name in names:
                        yield operation
                    if len(operation.regions):
                        outer.append(operation)


def _custom_call_targets(module: Operation) -> tuple[str, ...]:
    calls = operations_named(module, "stablehlo.custom_call")
    targets = {ir.StringAttr(call.attributes["call_target_name"]).value for call in calls}
    return tuple(sorted(targets))


def _constants(module: Operation) -> tuple[ArrayType, ...]:
    """Return the types of the constants whose elements are not all equal."""
    return tuple(
        _array_type(constant.results[0].type, "constant")
        for constant in operations_named(module, "stablehlo.constant")
        if math.prod(constant.results[0].type.shape) > 1
        and is_array_type(constant.results[0].type)  # excludes integers smaller than a byte
        and not _is_splat(constant)
    )


def _is_splat(constant: Operation) -> bool:
    try:
        return bool(constant.attributes["value"].is_splat)
    except TypeError:  # the bindings have no class for complex values
        # Print a clone: printing the operation itself numbers all values of its function.
        return _ELIDED not in constant.clone(ip=False).get_asm(large_elements_limit=1)
