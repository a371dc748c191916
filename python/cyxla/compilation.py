# SPDX-License-Identifier: Apache-2.0
"""`compile_program`: from a Program to an Executable of the process's plugin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from cyxla import ffi, runtime
from cyxla.errors import ArgumentError, CompileError, UnsupportedError
from cyxla.program import Program

if TYPE_CHECKING:
    from cyxla._runtime import Executable

__all__ = ["CompileOption", "CompileStatistics", "compile_program"]

CompileOption: TypeAlias = bool | int | float | str


class CompileStatistics(NamedTuple):
    """What a compilation cost and made. None stands for what neither plugin nor JAX tells.

    Attributes:
        seconds: wall-clock time of the compilation in the plugin.
        program_bytes: bytes of the StableHLO that the plugin was given.
        code_bytes: bytes of the generated code.
        argument_bytes: bytes of all inputs together.
        output_bytes: bytes of all outputs together.
        temporary_bytes: bytes of scratch memory during one execution.
        flops: floating-point operations of one execution: the plugin's count, else that of
            `Program.flops`.
    """

    seconds: float
    program_bytes: int
    code_bytes: int | None
    argument_bytes: int | None
    output_bytes: int | None
    temporary_bytes: int | None
    flops: float | None


# What the plugins say when they cannot read a program, as opposed to compile it.
_UNREADABLE: Final = ("Failed to parse", "unregistered operation", "vhlo", "bytecode")

# JAX functions behind the families of library routines that JAX calls: the prefix of the library,
# the letter of the precision and the suffix vary.
_FUNCTIONS_BY_ROUTINE: Final = {
    "potrf": "jnp.linalg.cholesky",
    "getrf": "jnp.linalg.solve, inv, det, jax.scipy.linalg.lu, expm",
    "trsm": "jax.scipy.linalg.solve_triangular, jnp.linalg.solve",
    "geqrf": "jnp.linalg.qr",
    "orgqr": "jnp.linalg.qr",
    "ungqr": "jnp.linalg.qr",
    "geqp3": "jax.scipy.linalg.qr with pivoting",
    "syevd": "jnp.linalg.eigh",
    "heevd": "jnp.linalg.eigh",
    "gesdd": "jnp.linalg.svd, lstsq, pinv",
    "gesvd": "jnp.linalg.svd, lstsq, pinv",
    "geev": "jnp.linalg.eig",
    "gees": "jax.scipy.linalg.schur, sqrtm",
    "gehrd": "jax.scipy.linalg.hessenberg",
    "sytrd": "jax.lax.linalg.tridiagonal",
    "hetrd": "jax.lax.linalg.tridiagonal",
    "gtsv": "jax.lax.linalg.tridiagonal_solve",
    "tridiagonal_solve": "jax.lax.linalg.tridiagonal_solve",
    "csr_sparse_dense": "jax.experimental.sparse",
    "threefry2x32": "jax.random",
}


def compile_program(
    program: Program, *, options: Mapping[str, CompileOption] | None = None
) -> tuple[Executable, CompileStatistics]:
    """Compile a program with the process's plugin, loading the default one if none is loaded yet.

    The GIL is released while the plugin compiles. Safe from several threads at once.

    Args:
        program: what `cyxla.lower` made.
        options: XLA options for this program alone, such as
            `{"xla_cpu_multi_thread_eigen": False}`, over the plugin's own settings.

    Raises:
        ArgumentError: `program` is no Program, or an option is no bool, int, float or str.
        PluginError: no plugin can be loaded.
        CompileError: the program is for another platform, the plugin does not know an option or a
            custom call, or it cannot compile the program.
    """
    if not isinstance(program, Program):
        raise ArgumentError(
            f"program must be a cyxla.Program, got {type(program).__name__}; cyxla.lower makes one"
        )
    overrides = _checked_options(options)
    info = runtime.ensure_loaded()
    if program.platform != info.plugin.platform:
        raise CompileError(
            f"program {program.name!r} was lowered for {program.platform!r}, but the plugin of this"
            f" process, {info.plugin.path}, is for {info.plugin.platform!r}; lower it with"
            f" platform={info.plugin.platform!r}, or call"
            f" cyxla.initialize(platform={program.platform!r}) before anything else needs a plugin"
        )
    return _compile(program, overrides, info)


def _compile(
    program: Program, overrides: Mapping[str, CompileOption], info: runtime.RuntimeInfo
) -> tuple[Executable, CompileStatistics]:
    from cyxla import _runtime

    first_error: CompileError | None = None
    for code in _readable_forms(program, info.stablehlo_version):
        try:
            executable, measured = _runtime.compile_code(
                code,
                "mlir",
                overrides,
                program.name,
                [array.array_type for array in program.inputs],
                [array.array_type for array in program.outputs],
                program.needs_python,
                [array.name for array in program.inputs],
            )
        except CompileError as error:
            first_error = first_error or error
            if not any(sign in str(error) for sign in _UNREADABLE):
                break
        else:
            statistics = CompileStatistics(**measured)
            if statistics.flops is None:
                statistics = statistics._replace(flops=program.flops)
            return executable, statistics
    assert first_error is not None
    raise CompileError(_explain(program, info, first_error)) from first_error


def _readable_forms(program: Program, plugin_version: str | None) -> Iterator[bytes]:
    """The program in the forms that the plugin may be able to read, the likeliest first."""
    if plugin_version is None or not _is_newer(program.stablehlo_version, plugin_version):
        yield program.stablehlo
    else:
        try:
            from cyxla import stablehlo

            yield stablehlo.for_version(program, plugin_version)
        except (ImportError, UnsupportedError):  # the text needs neither jaxlib nor a version
            pass
    # Bytecode of dialects beside StableHLO has no versions, so an older reader may refuse it where
    # it reads the same operations as text.
    yield program.text.encode()


def _is_newer(version: str, other: str) -> bool:
    return _numbers(version) > _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _checked_options(options: Mapping[str, CompileOption] | None) -> dict[str, CompileOption]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ArgumentError(
            f"options must be a mapping of XLA option names to values, got {type(options).__name__}"
        )
    return {_checked_name(name): _checked_value(name, value) for name, value in options.items()}


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"the name of a compile option must be a string, got {name!r}")
    return name


def _checked_value(name: str, value: object) -> CompileOption:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bool | int | float | str):
        raise ArgumentError(
            f"compile option {name!r} must be a bool, int, float or str, got"
            f" {type(value).__name__} {value!r}"
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ArgumentError(f"compile option {name!r} must fit in 64 bits, got {value}")
    return value


def _explain(program: Program, info: runtime.RuntimeInfo, error: CompileError) -> str:
    plugin = info.plugin
    lines = [
        f"program {program.name!r} cannot be compiled by {plugin.source}, {plugin.path}: {error}"
    ]
    plugin_version = info.stablehlo_version
    if plugin_version is not None and _is_newer(program.stablehlo_version, plugin_version):
        lines.append(
            f"The program is StableHLO {program.stablehlo_version} (JAX {program.jax_version}), the"
            f" plugin reads up to {plugin_version}: upgrade the plugin, or lower with an older JAX."
        )
    if any(target in str(error) for target in program.custom_call_targets):
        lines.append("The program needs these custom calls:")
        lines.extend(f"  {describe_target(target)}" for target in program.custom_call_targets)
        count, fault = ffi.jaxlib_targets()
        if fault is not None:
            lines.append(f"Of jaxlib's handlers {count} were given to the plugin: {fault}.")
        elif count:
            lines.append(
                f"The plugin was given jaxlib's {count} handlers, but it drops those of a newer XLA"
                " FFI than its own: use a plugin and a jaxlib of about the same age."
            )
        lines.append("Register handlers of your own with cyxla.register_ffi_target.")
    return "\n".join(lines)


def describe_target(target: str) -> str:
    """The custom-call target with the JAX functions that call it, where they are known."""
    for routine, functions in _FUNCTIONS_BY_ROUTINE.items():
        if routine in target:
            return f"{target} ({functions})"
    return target
