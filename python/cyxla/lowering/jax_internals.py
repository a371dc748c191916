# SPDX-License-Identifier: Apache-2.0
"""Uses JAX's internals. No other module imports `jax._src` or `jaxlib._jax`."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Final

import jax
from jax.extend import backend, core as jax_core

from cyxla.errors import LoweringError

__all__ = [
    "constants_in_module",
    "count_flops",
    "forget",
    "host_callbacks_of",
    "is_x64_enabled",
]

# The modules whose caches keep traces alive.
_CACHING_MODULES: Final = ("jax._src.core", "jax._src.interpreters.pxla", "jax._src.pjit")


def is_x64_enabled() -> bool:
    """Return whether this thread enables 64-bit types; `jax.config.jax_enable_x64` is global."""
    return bool(_needed("jax._src.config", "enable_x64").value)


@contextlib.contextmanager
def constants_in_module() -> Iterator[None]:
    """Keep the arrays that a function closes over as constants of its module.

    Otherwise JAX may turn them into parameters, which native callers do not pass. JAX versions
    without the setting always keep them.
    """
    state = getattr(_module("jax._src.config"), "use_simplified_jaxpr_constants", None)
    with contextlib.nullcontext() if state is None else state(False):
        yield


def host_callbacks_of(lowered: jax.stages.Lowered) -> Sequence[Any]:
    """Return the Python functions that a lowered function calls, indexed as in its custom calls."""
    lowering = getattr(lowered, "_lowering", None)
    arguments = getattr(lowering, "compile_args", None)
    if arguments is None:
        raise _missing("jax.stages.Lowered._lowering.compile_args")
    found: Sequence[Any] = arguments.get("host_callbacks", ())
    return found


def forget(jaxpr: Any) -> None:
    """Remove a trace from JAX's caches.

    With keep_unused, JAX 0.11 and later cache values that refer to their own weakly held keys. Each
    lowering, and every array that the function closes over, would stay in memory.
    """
    if not isinstance(jaxpr, jax_core.Jaxpr):
        return  # older versions trace to a ClosedJaxpr, which they drop themselves
    for module in filter(None, map(_module, _CACHING_MODULES)):
        for cache in list(vars(module).values()):
            if not isinstance(cache, type) and hasattr(cache, "evict_weakref"):
                # A cache with keys of another type may not be able to compare them with this one.
                with contextlib.suppress(TypeError):
                    cache.evict_weakref(jaxpr)


def count_flops(artifact: bytes) -> float | None:
    """Return the floating-point operations of one execution, by XLA's cost analysis.

    Returns None if the analysis fails or jaxlib does not have it; the number is only informative.
    """
    try:
        extension = importlib.import_module("jaxlib._jax")
        computation = extension.mlir.mlir_module_to_xla_computation(artifact, use_tuple_args=False)
        module = computation.as_hlo_module()
        flops = extension.hlo_module_cost_analysis(backend.get_backend(), module).get("flops")
    except Exception:  # XlaRuntimeError, AttributeError and others
        return None
    return float(flops) if flops is not None and flops >= 0 else None


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _needed(module: str, name: str) -> Any:
    value = getattr(_module(module), name, None)
    if value is None:
        raise _missing(f"{module}.{name}")
    return value


def _missing(name: str) -> LoweringError:
    return LoweringError(
        f"this version of cyxla needs {name}, which JAX {jax.__version__} does not have; install a"
        " newer cyxla, or an older JAX (0.10.2 to 0.12 are tested)"
    )
