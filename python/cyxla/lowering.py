# SPDX-License-Identifier: Apache-2.0
"""`lower`: from a JAX function to a Program.

Importing this module needs no jax; `lower` itself does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cyxla import plugins, runtime
from cyxla.errors import ArgumentError, LoweringError, PluginError
from cyxla.program import Program, ProgramArray, identifier

__all__ = ["Program", "ProgramArray", "lower"]


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
    not what `jax.jit` has cached. Safe from several threads at once.

    The program takes every declared leaf, used or not, in JAX's flatten order (`Program.inputs`),
    and returns every leaf of the result (`Program.outputs`). Donation is ignored: the caller keeps
    its memory. To bind static arguments, use functools.partial.

    Args:
        function: a plain or jitted function, a functools.partial, the result of `jax.grad` and the
            like, or any other callable that JAX can trace.
        arguments: one entry for each positional parameter: a `jax.ShapeDtypeStruct`, an array that
            stands for its shape and dtype (also NumPy's usual float64), or a pytree of these.
            Python scalars have the dtypes that `jax.jit` gives them.
        platform: JAX's lowering platform: "cpu", "cuda", "rocm" or "tpu". None takes that of the
            loaded plugin, else that of the plugin that `find_plugin` would choose, else "cpu".
        name: name of the program; None takes the function's.
        x64: whether to trace with 64-bit types enabled, as `jax.enable_x64` does. None enables
            them when a declared leaf is 64 bits wide (complex128 included), and follows JAX's own
            setting otherwise. With them enabled, JAX's default dtypes inside the function are 64
            bits wide too.

    Raises:
        ArgumentError: an argument of `lower` itself is wrong.
        LoweringError: the function cannot be traced, or needs something that native callers cannot
            give: symbolic dimensions, host callbacks, several devices, dtypes without a layout in
            host memory. What JAX raised is its `__cause__`.
    """
    if not callable(function):
        raise ArgumentError(f"function must be callable, got {type(function).__name__}")
    name = _checked_name(function, name)
    platform = _checked_platform(platform)
    try:
        from cyxla import tracing
    except ImportError as error:
        raise LoweringError(f"lowering needs jax: pip install 'jax>=0.10.2' ({error})") from error
    return tracing.trace_program(function, arguments, platform=platform, name=name, x64=x64)


def _checked_name(function: Callable[..., Any], name: str | None) -> str:
    if name is None:
        inner = function
        while isinstance(inner, functools.partial):
            inner = inner.func
        return identifier(getattr(inner, "__name__", type(inner).__name__))
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"name must be a string that is not empty, got {name!r}")
    return name


def _checked_platform(platform: str | None) -> str:
    if platform is None:
        return _default_platform()
    if platform in plugins.PLATFORM_PREFERENCE:
        return platform
    installed = {plugin.platform for plugin in plugins.available_plugins()}
    if platform not in installed and platform != runtime.current_platform():
        known = dict.fromkeys([*plugins.PLATFORM_PREFERENCE, *sorted(installed)])
        raise ArgumentError(f"unknown platform {platform!r}: known are {', '.join(known)}")
    return platform


def _default_platform() -> str:
    loaded = runtime.current_platform()
    if loaded is not None:
        return loaded
    try:
        return plugins.find_plugin().platform
    except PluginError:  # lowering needs no plugin
        return "cpu"
