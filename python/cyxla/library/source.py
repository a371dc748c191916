# SPDX-License-Identifier: Apache-2.0
"""Compiles a program with the plugin, and reads what its C function is made of."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cyxla import runtime
from cyxla.compilation.compile import check_platform, compile_checked, usable_settings
from cyxla.compilation.settings import CompileRequest, check_settings
from cyxla.compilation.small_matrices import is_close
from cyxla.errors import LibraryError, UnsupportedError
from cyxla.library.descriptor import write_descriptor
from cyxla.library.driver import Source, write_function
from cyxla.library.interface import Function
from cyxla.library.verify import Array, trial_inputs

if TYPE_CHECKING:
    from cyxla._runtime import Executable, Plan
    from cyxla.program.program import Program

__all__ = ["Compiled", "compile_function"]

_DUMP_FOLDER: Final = "xla_dump_to"
# Restricts the dump to LLVM's IR. Older plugins lack it, and dump more.
_DUMP_EMITTER: Final = "xla_dump_emitter_re"
# How many sets of inputs compare the two forms of a program: numbers around one.
_NUM_COMPARED: Final = 4


class Compiled(NamedTuple):
    """A program as the plugin compiled it, and its function in LLVM's IR.

    Attributes:
        function: the C function.
        executable: the plugin's program, which has the same numbers.
        source: the function in LLVM's IR.
        inputs: the inputs to try it on.
        may_hang: whether it has a loop that might not end on some of them.
    """

    function: Function
    executable: Executable
    source: Source
    inputs: list[list[Array]]
    may_hang: bool


class _Form(NamedTuple):
    """A program as the plugin compiled it: its plan, or why there is none, and its kernels' IR."""

    executable: Executable
    plan: Plan | None
    refusal: str
    kernels: dict[str, str]


def compile_function(function: Function, *, exact: bool) -> Compiled:
    """Compile a program for PJRT, and write its function in LLVM's IR.

    Args:
        function: the program and its C function.
        exact: False also compiles small matrix products as kernels.

    Raises LibraryError for a program that only the plugin can run, or that is not for a CPU.
    """
    program = function.program
    request = _request(function)
    form = _compile_form(request)
    if form.plan is None and not exact:
        second = request.settings.for_small_matrices()
        if second is not None:
            form = _second_form(request._replace(settings=second), form)
    if form.plan is None:
        raise LibraryError(
            f"program {program.name!r} cannot be built into a library: {form.refusal}"
            f"{_advice(program) if exact else ''}"
        )
    source = write_function(function.name, form.plan, form.kernels, function.optional_outputs)
    descriptor = write_descriptor(function, source.workspace_bytes)
    source = source._replace(text=f"{source.text}\n{descriptor}")
    may_hang = form.plan.has_unbounded_loop
    inputs = list(trial_inputs(program.inputs, has_specials=not may_hang))
    return Compiled(function, form.executable, source, inputs, may_hang)


def _request(function: Function) -> CompileRequest:
    program = function.program
    info = runtime.runtime_info()
    if program.platform != "cpu" or info.plugin.platform != "cpu":
        raise LibraryError(
            f"program {program.name!r} was lowered for {program.platform!r} and the plugin is for"
            f" {info.plugin.platform!r}; libraries are built of programs for 'cpu', by a CPU plugin"
        )
    check_platform(program, info)
    if program.needs_python:
        raise LibraryError(
            f"program {program.name!r} calls back into Python, which a library cannot do"
        )
    settings = check_settings([program], None, None, False, "pjrt", True, False)
    settings = usable_settings(settings, info, stacklevel=5)
    return CompileRequest(program, settings, info)


def _compile_form(request: CompileRequest) -> _Form:
    """Compile a program, and have the plugin dump the IR of its kernels into a private folder."""
    from cyxla import _runtime
    from cyxla.library.ir import kernel_texts

    program, settings = request.program, request.settings
    with tempfile.TemporaryDirectory(prefix="cyxla-") as folder:
        request = request.with_settings(
            overrides={**settings.overrides, _DUMP_FOLDER: folder, _DUMP_EMITTER: "llvm"},
            optional=settings.optional | {_DUMP_EMITTER},
        )
        executable = compile_checked(request).executable
        try:
            plan = _runtime.read_plan(
                _runtime.serialize(executable),
                [array.size_bytes for array in program.inputs],
                [array.size_bytes for array in program.outputs],
            )
        except UnsupportedError as refusal:
            return _Form(executable, None, str(refusal), {})
        return _Form(executable, plan, "", kernel_texts(Path(folder), plan.kernels))


def _second_form(request: CompileRequest, first: _Form) -> _Form:
    """Compile a program with its small matrix products as kernels; they add in another order.

    Raises LibraryError when the results are not those of the first form within rounding.
    """
    form = _compile_form(request)
    if form.plan is None:
        return form
    program = request.program
    inputs = trial_inputs(program.inputs, has_specials=False)
    for arrays, _ in zip(inputs, range(_NUM_COMPARED), strict=False):
        wanted, found = first.executable.run(arrays), form.executable.run(arrays)
        for output, left, right in zip(program.outputs, wanted, found, strict=True):
            if not is_close(left, right):
                raise LibraryError(
                    f"program {program.name!r} with its matrix products as kernels gives other"
                    f" results in output {output.name!r} than within rounding:"
                    f" {_largest_difference(left, right)}"
                )
    return form


def _largest_difference(left: Array, right: Array) -> str:
    with np.errstate(all="ignore"):
        difference = np.nanmax(np.abs(left.astype(np.complex128) - right), initial=0)
        largest = np.nanmax(np.abs(left.astype(np.complex128)), initial=0)
    return f"they differ by {difference:.1e} where the largest value is {largest:.1e}"


def _advice(program: Program) -> str:
    if "stablehlo.dot_general" not in program.text:
        return ""
    return "; exact=False builds small matrix products, which then add in another order"


def output_bytes(function: Function) -> Sequence[int]:
    """Return the size of each output."""
    return [array.size_bytes for array in function.program.outputs]
