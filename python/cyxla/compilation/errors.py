# SPDX-License-Identifier: Apache-2.0
"""Explains why the plugin cannot compile a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cyxla.ffi import targets
from cyxla.plugins.messages import is_unreadable, named_in
from cyxla.program.versions import is_newer

if TYPE_CHECKING:
    from cyxla.compilation.settings import CompileRequest
    from cyxla.errors import CompileError
    from cyxla.program.program import Program

__all__ = ["describe_target", "explain"]

# The JAX functions that call each library routine. The library's prefix, the letter for the
# precision and the suffix vary.
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

# Custom calls that XLA removes from a program before it looks for handlers.
_TARGETS_OF_XLA: Final = frozenset(
    {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "TopK"}
)


def explain(request: CompileRequest, error: CompileError) -> str:
    """Return the plugin's error for a program, with its cause if known."""
    program, info = request.program, request.info
    plugin = info.plugin
    lines = [
        f"program {program.name!r} cannot be compiled by {plugin.source}, {plugin.path}: {error}"
    ]
    plugin_version = info.stablehlo_version
    is_too_new = plugin_version is not None and is_newer(program.stablehlo_version, plugin_version)
    if is_too_new and is_unreadable(error):
        lines.append(
            f"The program is StableHLO {program.stablehlo_version} (JAX {program.jax_version}), the"
            f" plugin reads up to {plugin_version}: upgrade the plugin, or lower with an older JAX."
        )
    if named_in(error, program.custom_call_targets):
        lines.extend(_explain_targets(program))
    return "\n".join(lines)


def _explain_targets(program: Program) -> Iterator[str]:
    """Yield lines about the registration of a program's custom calls."""
    found = {name: targets.registration(name) for name in program.custom_call_targets}
    missing = {
        name: "no handler is registered under this name" if known is None else known.description
        for name, known in found.items()
        if (known is None or not known.is_usable) and name not in _TARGETS_OF_XLA
    }
    if missing:
        yield "The program needs these custom calls, which are not registered with the plugin:"
        for name, reason in missing.items():
            yield f"  {describe_target(name)}: {reason}"
        count, fault = targets.jaxlib_registered()
        if fault is not None:
            yield f"{count} of jaxlib's handlers are registered with the plugin: {fault}."
            if fault.startswith("ModuleNotFoundError"):
                yield "They come with JAX: pip install 'jax>=0.10.2'"
        yield "Register handlers of your own with cyxla.register_ffi_target."
    else:
        yield "All of its custom calls are registered with the plugin:"
        for name, known in found.items():
            yield f"  {describe_target(name)}: {known.description if known else 'built into XLA'}"


def describe_target(target: str) -> str:
    """Return the custom-call target with the JAX functions that call it, if known."""
    for routine, functions in _FUNCTIONS_BY_ROUTINE.items():
        if routine in target:
            return f"{target} ({functions})"
    return target
