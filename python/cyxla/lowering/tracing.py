# SPDX-License-Identifier: Apache-2.0
"""Traces a JAX function and checks that native code can call the result.

Imports jax, so `lower` imports this module on use.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
from jax.extend import core as jax_core, source_info_util

from cyxla.dtypes import ArrayType
from cyxla.errors import ArgumentError, LoweringError, counted
from cyxla.lowering import callbacks, jax_internals, stablehlo
from cyxla.lowering.arguments import (
    Leaf,
    advice_on_numbers,
    declared_leaves,
    path_names,
    specifications,
    unsupported_dtype,
)
from cyxla.program.program import Program
from cyxla.program.signature import ProgramArray

__all__ = ["trace_program"]

_PYTHON_TARGET: Final = re.compile(r"xla_.*python_(cpu|gpu)_callback")
_HOST_EFFECTS: Final = frozenset(
    {"DebugEffect", "OrderedDebugEffect", "IOEffect", "OrderedIOEffect"}
)
_REF_ADVICE: Final = "pass the value of the jax.Ref as an argument and return the new one"
_EFFECT_ADVICE: Final = {
    "ReadEffect": _REF_ADVICE,
    "WriteEffect": _REF_ADVICE,
    "ErrorEffect": "turn the checks into an output with jax.experimental.checkify.checkify",
}


def trace_program(
    function: Callable[..., Any], arguments: Any, *, platform: str, name: str, x64: bool | None
) -> tuple[Program, tuple[ArrayType, ...]]:
    """Return a function's program, and the types of its constants whose elements differ.

    See `cyxla.lower` for arguments and errors.
    """
    with _naming(name, passing=(ArgumentError,)):
        leaves = declared_leaves(function, arguments)
    with _tracing_context(_decide_x64(leaves, x64)), _naming(name):
        with _advising(lambda: advice_on_numbers(function, arguments)):
            traced = _trace(function, arguments)
        is_cpu = platform == "cpu"
        if not is_cpu:
            _refuse_host_callbacks(traced.jaxpr, platform)
        _refuse_effects(traced.jaxpr, _HOST_EFFECTS if is_cpu else frozenset())
        output_names = path_names("result", traced.out_info)
        _refuse_output_dtypes(output_names, traced.out_info)
        lowered = traced.lower(lowering_platforms=(platform,))
        host_calls = callbacks.HostCalls(
            jax_internals.host_callbacks_of(lowered), x64=jax_internals.is_x64_enabled()
        )
        artifact = stablehlo.portable_artifact(
            lowered.compiler_ir("stablehlo"), name, host_calls.bind
        )
        host_callbacks = host_calls.of_program(name)
        _refuse_other_calls(artifact.custom_call_targets)
        program = Program(
            name=name,
            platform=platform,
            inputs=_named([leaf.name for leaf in leaves], artifact.inputs, "parameter"),
            outputs=_named(output_names, artifact.outputs, "result"),
            stablehlo=artifact.code,
            stablehlo_version=artifact.version,
            text=artifact.text,
            custom_call_targets=artifact.custom_call_targets,
            needs_python=host_callbacks is not None,
            jax_version=jax.__version__,
            flops=functools.partial(jax_internals.count_flops, artifact.code),  # type: ignore[arg-type]
            host_callbacks=host_callbacks,
        )
        jax_internals.forget(traced.jaxpr)
        return program, artifact.constants


def _named(names: Sequence[str], types: Sequence[ArrayType], side: str) -> tuple[ProgramArray, ...]:
    if len(names) != len(types):
        raise LoweringError(
            f"JAX lowered it to a module with {counted(len(types), side)}, but {len(names)} are"
            f" declared ({', '.join(names)}): does the function close over a value of an enclosing"
            " jax.jit? If not, please report it"
        )
    return tuple(map(ProgramArray.of, names, types))


def _refuse_host_callbacks(jaxpr: Any, platform: str) -> None:
    """Raise LoweringError if the function calls back into Python, naming each call."""
    calls = [
        f"{equation.primitive.name} at {source_info_util.summarize(equation.source_info)}"
        for equation in _equations(jaxpr)
        if "callback" in equation.primitive.name or equation.primitive.name == "debug_print"
    ]
    if calls:
        raise LoweringError(
            f"it calls back into Python, which programs for {platform!r} cannot:"
            f" {'; '.join(calls)}; remove the call, return the value as an output, or lower it for"
            " 'cpu'"
        )


def _refuse_other_calls(targets: Sequence[str]) -> None:
    """Raise LoweringError for callbacks that only JAX's own client supports."""
    others = [target for target in targets if _PYTHON_TARGET.fullmatch(target)]
    others = [target for target in others if target not in callbacks.TARGETS]
    if others:
        raise LoweringError(
            f"it calls back into Python through {', '.join(f'custom call {it}' for it in others)},"
            " which needs JAX's own client; use jax.pure_callback, jax.experimental.io_callback or"
            " jax.debug.callback"
        )


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of all jaxprs inside it, each once."""
    found, seen = [getattr(jaxpr, "jaxpr", jaxpr)], set[int]()
    while found:
        one = found.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield from one.eqns
            found.extend(jax_core.subjaxprs(one))


def _refuse_effects(jaxpr: Any, permitted: frozenset[str]) -> None:
    # A jax.Ref that the function creates itself is not a side effect.
    names = {type(effect).__name__ for effect in jaxpr.effects} - {"InternalMutableArrayEffect"}
    names -= permitted
    if names:
        advice = dict.fromkeys(
            _EFFECT_ADVICE.get(effect, "return the values as outputs") for effect in sorted(names)
        )
        raise LoweringError(
            f"it has side effects ({', '.join(sorted(names))}), and a program only computes its"
            f" outputs; {', and '.join(advice)}"
        )


def _refuse_output_dtypes(names: tuple[str, ...], out_info: Any) -> None:
    for output_name, leaf in zip(names, jax.tree.leaves(out_info), strict=True):
        reason = unsupported_dtype(leaf.dtype)
        if reason is not None:
            raise LoweringError(f"output {output_name!r}: {reason}")


def _trace(function: Callable[..., Any], arguments: Any) -> Any:
    # A new function for every call: JAX caches by function object for that object's lifetime, and
    # drops unused arguments of a function that is already jitted.
    def declared(*values: Any) -> Any:
        return function(*values)

    functools.update_wrapper(declared, function, updated=())
    return jax.jit(declared, keep_unused=True).trace(*specifications(arguments))


def _decide_x64(leaves: tuple[Leaf, ...], x64: bool | None) -> bool | None:
    wide = [leaf for leaf in leaves if leaf.is_wide]
    if x64 is False and wide:
        raise ArgumentError(
            f"{wide[0].where} is {wide[0].value.dtype}, which x64=False would narrow to 32 bits;"
            " leave x64 out, or declare a 32-bit dtype"
        )
    return True if wide else x64


@contextlib.contextmanager
def _tracing_context(x64: bool | None) -> Iterator[None]:
    """Set this thread's JAX configuration for one lowering."""
    with contextlib.ExitStack() as stack:
        if x64 is not None:
            stack.enter_context(jax.enable_x64(x64))
        stack.enter_context(jax_internals.constants_in_module())
        yield


@contextlib.contextmanager
def _advising(advice: Callable[[], str]) -> Iterator[None]:
    """Turn an exception inside into a LoweringError with advice, if there is any."""
    try:
        yield
    except Exception as error:
        text = advice()
        if not text:
            raise
        raise LoweringError(f"{type(error).__name__}: {error}{text}") from error


@contextlib.contextmanager
def _naming(name: str, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn any exception inside into a LoweringError that names the function."""
    try:
        yield
    except passing:
        raise
    except LoweringError as error:
        raise LoweringError(f"{name!r} cannot be lowered: {error}") from error.__cause__
    except Exception as error:
        advice = ""
        if "static argument" in str(error):
            advice = "; bind static arguments with functools.partial before lowering"
        raise LoweringError(
            f"{name!r} cannot be lowered: {type(error).__name__}: {error}{advice}"
        ) from error
