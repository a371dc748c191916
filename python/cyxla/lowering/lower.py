# SPDX-License-Identifier: Apache-2.0
"""`lower`, which makes a Program from a JAX function.

Only the call imports jax, not this module.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final

from cyxla import runtime
from cyxla.dtypes import ArrayType
from cyxla.errors import ArgumentError, LargeConstantsWarning, LoweringError, PluginError
from cyxla.plugins import discovery, jax_environment, thread_cap, xla_flags
from cyxla.plugins.options import is_utf8
from cyxla.plugins.plugin import PLATFORM_ENVIRONMENT_VARIABLE, PLUGIN_ENVIRONMENT_VARIABLE
from cyxla.program.program import Program
from cyxla.program.signature import identifier

__all__ = ["LARGE_CONSTANTS_BYTES", "lower"]

# XLA folds constants, so lowering and compiling slow down: the sine of 256 KiB takes 48 ms as a
# constant and 21 ms as an argument; 16 MiB take 2 s, 64 KiB only 25 ms.
LARGE_CONSTANTS_BYTES: Final = 256 * 1024

# The environment variables that affect the choice of the plugin.
_VARIABLES: Final = (
    PLUGIN_ENVIRONMENT_VARIABLE,
    PLATFORM_ENVIRONMENT_VARIABLE,
    jax_environment.TPU_LIBRARY_VARIABLE,
    jax_environment.LIBRARIES_VARIABLE,
)


def lower(
    function: Callable[..., Any],
    arguments: list[Any] | tuple[Any, ...],
    *,
    platform: str | None = None,
    name: str | None = None,
    x64: bool | None = None,
) -> Program:
    """Return a JAX function lowered for arguments of the given shapes and dtypes.

    Lowering needs no plugin, changes neither JAX's configuration nor its caches for `jax.jit`, and
    is thread-safe. JAX starts its default backend to lower; set JAX_PLATFORMS=cpu to keep it off a
    GPU, which still allows lowering for any platform.

    The program takes every declared leaf, used or not, in JAX's flatten order (`Program.inputs`),
    and returns every leaf of the result (`Program.outputs`). Donation is ignored. Bind static
    arguments with functools.partial.

    On the CPU the function may call Python: `jax.pure_callback`, `jax.experimental.io_callback`,
    `jax.debug.print` and `jax.debug.callback`, ordered or not. Such a program has
    `Program.needs_python` set and cannot leave this process.

    Args:
        function: a plain or jitted function, a functools.partial, the result of `jax.grad`, or any
            other callable that JAX can trace.
        arguments: one entry for each positional parameter: a `jax.ShapeDtypeStruct`, an array that
            stands for its shape and dtype, or a pytree of these. `np.ones(3)` declares float64;
            `jnp.ones(3)` and Python scalars have the dtypes that `jax.jit` gives them, float32
            unless 64-bit types are enabled. A typed PRNG key becomes an input of uint32 with the
            words of `jax.random.key_data` as its last dimension, and so does a result.
        platform: JAX's lowering platform: "cpu", "cuda", "rocm" or "tpu". None means the platform
            of the loaded plugin, else of the plugin that `find_plugin` would return, else "cpu".
            The search for plugins is cached until `sys.path`, CYXLA_PJRT_PLUGIN, CYXLA_PLATFORM,
            TPU_LIBRARY_PATH or PJRT_NAMES_AND_LIBRARY_PATHS changes.
        name: the program's name; None means the function's.
        x64: whether to trace with 64-bit types enabled, as `jax.enable_x64` does. None enables
            them if a declared leaf is 64 bits wide (or complex128), and follows JAX's setting
            otherwise. If enabled, JAX's default dtypes inside the function are 64 bits wide too.

    Arrays that the function closes over become constants of the program. If they exceed
    `LARGE_CONSTANTS_BYTES` (256 KiB) together, a `LargeConstantsWarning` lists the largest. Arrays
    with all elements equal do not count, because they take no space.

    Raises:
        ArgumentError: an argument of `lower` is invalid, or the environment variable PJRT_NPROC
            (NPROC) is so large that JAX would hang.
        PluginError: the platform is unknown.
        LoweringError: the function cannot be traced, or needs a feature that programs lack:
            symbolic dimensions, host callbacks on other platforms than the CPU, several devices,
            dtypes without a layout in host memory. Its `__cause__` is JAX's exception. Also if jax
            is not installed, or would abort on the environment variable XLA_FLAGS.
    """
    if not callable(function):
        raise ArgumentError(f"function must be callable, got {type(function).__name__}")
    if x64 is not None and not isinstance(x64, bool):
        raise ArgumentError(f"x64 must be True, False or None, got {x64!r} ({type(x64).__name__})")
    name = _checked_name(function, name)
    platform = _checked_platform(platform)
    try:
        from cyxla.lowering import tracing
    except ImportError as error:
        raise LoweringError(f"lowering needs jax: pip install 'jax>=0.10.2' ({error})") from error
    xla_flags.check_for_jax()
    thread_cap.check_pool_variables()
    program, constants = tracing.trace_program(
        function, arguments, platform=platform, name=name, x64=x64
    )
    _warn_of_large(constants, name)
    return program


def _warn_of_large(constants: tuple[ArrayType, ...], name: str) -> None:
    total = sum(constant.size_bytes for constant in constants)
    if total <= LARGE_CONSTANTS_BYTES:
        return
    largest = sorted(constants, key=lambda constant: -constant.size_bytes)
    shown = ", ".join(
        f"{constant.dtype.name} of shape {constant.shape} ({constant.size_bytes} bytes)"
        for constant in largest[:3]
    )
    more = f" and {len(largest) - 3} more" if len(largest) > 3 else ""
    warnings.warn(
        f"program {name!r} has constants of {total} bytes: {shown}{more}. They are copied into it"
        " and make it slow to lower and compile. Pass the arrays that the function closes over as"
        " arguments, or silence this with warnings.filterwarnings('ignore',"
        " category=cyxla.LargeConstantsWarning)",
        LargeConstantsWarning,
        stacklevel=3,
    )


def _checked_name(function: Callable[..., Any], name: str | None) -> str:
    if name is None:
        inner = function
        while isinstance(inner, functools.partial):
            inner = inner.func
        return identifier(getattr(inner, "__name__", type(inner).__name__))
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"name must be a non-empty string, got {name!r}")
    if not is_utf8(name):
        raise ArgumentError(f"name {name!r} cannot be written in UTF-8: surrogates not allowed")
    return name


def _checked_platform(platform: str | None) -> str:
    if platform is None:
        return _default_platform()
    if platform != runtime.current_platform():
        discovery.check_platform(platform, "the argument platform")
    return platform


def _default_platform() -> str:
    loaded = runtime.current_platform()
    if loaded is not None:
        return loaded
    try:
        return _found_platform(tuple(map(os.environ.get, _VARIABLES)), tuple(sys.path))
    except PluginError:  # lowering needs no plugin
        return "cpu"


@functools.lru_cache(maxsize=1)
def _found_platform(variables: tuple[str | None, ...], path: tuple[str, ...]) -> str:
    """Return the platform of `find_plugin`, which takes longer than lowering a small function.

    The arguments are the cache's key; errors are not cached.
    """
    return discovery.find_plugin().platform
