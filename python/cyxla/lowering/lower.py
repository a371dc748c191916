# SPDX-License-Identifier: Apache-2.0
"""`lower`: from a JAX function to a Program.

Importing this module needs no jax; `lower` itself does.
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

# From here lowering and compiling may take twice as long as with arguments, as XLA computes with
# constants in advance: 48 ms instead of 21 for the sine of 256 KiB, 2 s for that of 16 MiB. Below
# it is hard to see: 25 ms for 64 KiB.
LARGE_CONSTANTS_BYTES: Final = 256 * 1024

# By which plugins are found and chosen.
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
    """Lower a JAX function for arguments of the given shapes and dtypes.

    No plugin is needed, and nothing of the caller's JAX state changes: not its configuration, and
    not what `jax.jit` has cached. Safe from several threads at once. JAX starts its own default
    backend to lower anything; where that would be a GPU, the environment variable JAX_PLATFORMS=cpu
    keeps JAX away from it, and programs for any platform can be lowered all the same.

    The program takes every declared leaf, used or not, in JAX's flatten order (`Program.inputs`),
    and returns every leaf of the result (`Program.outputs`). Donation is ignored: the caller keeps
    its memory. To bind static arguments, use functools.partial.

    For the CPU the function may call Python: `jax.pure_callback`, `jax.experimental.io_callback`,
    `jax.debug.print` and `jax.debug.callback`, ordered ones too. Such a program has
    `Program.needs_python` set and belongs to this process.

    Args:
        function: a plain or jitted function, a functools.partial, the result of `jax.grad` and the
            like, or any other callable that JAX can trace.
        arguments: one entry for each positional parameter: a `jax.ShapeDtypeStruct`, an array that
            stands for its shape and dtype, or a pytree of these. `np.ones(3)` declares float64;
            `jnp.ones(3)` and Python scalars have the dtypes that `jax.jit` gives them, float32
            unless 64-bit types are enabled. A typed PRNG key is an input of uint32, with the words
            of `jax.random.key_data` as its last dimension; results that are keys are the same.
        platform: JAX's lowering platform: "cpu", "cuda", "rocm" or "tpu". None takes that of the
            loaded plugin, else that of the plugin that `find_plugin` would choose, else "cpu".
            Plugins are looked for once, and again when `sys.path` or an environment variable that
            names one has changed: CYXLA_PJRT_PLUGIN, CYXLA_PLATFORM, TPU_LIBRARY_PATH or
            PJRT_NAMES_AND_LIBRARY_PATHS.
        name: name of the program; None takes the function's.
        x64: whether to trace with 64-bit types enabled, as `jax.enable_x64` does. None enables
            them when a declared leaf is 64 bits wide (complex128 included), and follows JAX's own
            setting otherwise. With them enabled, JAX's default dtypes inside the function are 64
            bits wide too.

    Arrays that the function closes over become constants of the program. When they have more than
    `LARGE_CONSTANTS_BYTES` (256 KiB) together, a `LargeConstantsWarning` says which to pass as
    arguments. Constants with one value throughout do not count, as they take no space.

    Raises:
        ArgumentError: an argument of `lower` itself is wrong, or the environment variable
            PJRT_NPROC (NPROC) is so large that JAX would hang.
        PluginError: an unknown platform.
        LoweringError: the function cannot be traced, or needs something that native callers cannot
            give: symbolic dimensions, host callbacks on other platforms than the CPU, several
            devices, dtypes without a layout in host memory. What JAX raised is its `__cause__`.
            Also without jax, and where JAX would end the process over the environment variable
            XLA_FLAGS.
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
        f"program {name!r} has constants of {total} bytes: {shown}{more}. They make it slow to"
        " lower and compile, and are copied into it. Pass the arrays that the function closes over"
        " as arguments; if they are wanted as they are, silence this with warnings.filterwarnings("
        "'ignore', category=cyxla.LargeConstantsWarning)",
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
        raise ArgumentError(f"name must be a string that is not empty, got {name!r}")
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
    """The platform of `find_plugin`, which takes longer than lowering a small function.

    The arguments are what the result hangs on; an error is not remembered.
    """
    return discovery.find_plugin().platform
