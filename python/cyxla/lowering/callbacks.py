# SPDX-License-Identifier: Apache-2.0
"""Rewrites the Python callbacks in a module that JAX lowered, so that cyxla's handler answers them.

JAX numbers the functions of each lowering from 0, and its client passes them to every execution.
Here a call refers to its function by a number that is unique in the process. For ordered effects
JAX adds a token parameter and a token result, which chain executions. cyxla's executions are
synchronous, so main makes the first token itself and drops the last.

Imports jax; only `cyxla.lowering.tracing` imports this module.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo as stablehlo_dialect

from cyxla.errors import LoweringError
from cyxla.lowering.stablehlo import (
    Operation,
    is_array_type,
    main_function,
    operations_named,
    parameter_attributes,
    set_parameter_attributes,
)
from cyxla.program.host_callbacks import HostCallback, HostCallbacks

__all__ = ["TARGETS", "HostCalls"]

TARGETS: Final = frozenset(
    {"xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback"}
)
"""JAX's custom-call targets for Python callbacks that cyxla supports."""

_CONFIG: Final = "mhlo.backend_config"
_SHARDING: Final = "sdy.sharding"
_TOKEN: Final = "!stablehlo.token"


class HostCalls:
    """The Python callbacks in one module.

    `functions` is JAX's list for the lowering, indexed by the numbers in the module. A function is
    called with the setting `x64` that it was lowered with.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], *, x64: bool) -> None:
        self._functions = functions
        self._x64 = x64
        self._made: dict[int, HostCallback] = {}

    def bind(self, module: Operation) -> None:
        """Renumber the functions in the calls, and remove token parameters and results from main.

        Raises:
            LoweringError: a call refers to none of the functions, or passes or returns an array
                whose elements are smaller than a byte.
        """
        for call in list(operations_named(module, "stablehlo.custom_call")):
            if _target(call) in TARGETS:
                self._bind_call(call)
        if self._made:
            _drop_tokens(main_function(module))
            module.verify()

    def of_program(self, name: str) -> HostCallbacks | None:
        """Return the functions that a program with the module must own, None if there are none."""
        return HostCallbacks(name, tuple(self._made.values())) if self._made else None

    def _bind_call(self, operation: Operation) -> None:
        index = _function_index(operation)
        if index is None or index >= len(self._functions):
            raise LoweringError(
                f"it has a custom call {_target(operation)} that refers to none of its host"
                " callbacks; call Python with jax.pure_callback, jax.experimental.io_callback or"
                " jax.debug.callback"
            )
        _refuse_types(operation)
        if index not in self._made:
            function = functools.partial(_call, self._functions[index], self._x64)
            self._made[index] = HostCallback(function, _where(operation))
        number = ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), self._made[index].number)
        operation.attributes[_CONFIG] = ir.DictAttr.get({"index": number})
        if _SHARDING in operation.attributes:  # for one device; older plugins may not know it
            del operation.attributes[_SHARDING]


def _target(operation: Operation) -> str:
    return str(ir.StringAttr(operation.attributes["call_target_name"]).value)


def _refuse_types(operation: Operation) -> None:
    for side, values in (("argument", operation.operands), ("result", operation.results)):
        for value in values:
            if str(value.type) != _TOKEN and not is_array_type(value.type):
                raise LoweringError(
                    f"the host callback {_where(operation)} has a {side} of type {value.type},"
                    " whose elements have no layout in host memory; convert it before and after"
                    " the call"
                )


def _function_index(operation: Operation) -> int | None:
    if _CONFIG not in operation.attributes:
        return None
    try:
        return int(ir.IntegerAttr(ir.DictAttr(operation.attributes[_CONFIG])["index"]).value)
    except (KeyError, ValueError):
        return None


def _call(function: Callable[..., Any], x64: bool, *arguments: Any) -> Any:
    # The calling thread may be tracing, or have another x64 setting.
    with jax.enable_x64(x64), jax.ensure_compile_time_eval():
        return function(*arguments)


def _where(operation: Operation) -> str:
    """Return JAX's primitive and the user's source line, if the operation's location has them."""
    location = str(operation.location)
    primitive = re.search(r'"[^"]*?(\w*(?:callback|print)\w*)', location)
    line = re.search(r'"([^"]+)":(\d+)', location)
    return (primitive[1] if primitive else "function") + (
        f" at {line[1]}:{line[2]}" if line else ""
    )


def _drop_tokens(main: Operation) -> None:
    function_type = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    inputs, results = list(function_type.inputs), list(function_type.results)
    kept_inputs = [i for i, type_ in enumerate(inputs) if str(type_) != _TOKEN]
    kept_results = [i for i, type_ in enumerate(results) if str(type_) != _TOKEN]
    attributes = parameter_attributes(main)
    block = main.regions[0].blocks[0]
    token_type = stablehlo_dialect.TokenType.get()
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        for i in reversed(range(len(inputs))):
            if i not in kept_inputs:
                token = ir.Operation.create("stablehlo.after_all", results=[token_type])
                block.arguments[i].replace_all_uses_with(token.results[0])
                block.erase_argument(i)
    if attributes:
        set_parameter_attributes(main, [attributes[i] for i in kept_inputs])
    if "res_attrs" in main.attributes:
        entries = list(main.attributes["res_attrs"])
        main.attributes["res_attrs"] = ir.ArrayAttr.get([entries[i] for i in kept_results])
    last = block.operations[len(block.operations) - 1]
    values = list(last.operands)
    with ir.InsertionPoint(last), ir.Location.unknown():
        ir.Operation.create("func.return", operands=[values[i] for i in kept_results])
    last.operation.erase()
    main.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([inputs[i] for i in kept_inputs], [results[i] for i in kept_results])
    )
