# SPDX-License-Identifier: Apache-2.0
"""Loads the process's plugin and reports its properties.

A process loads one plugin, which cannot be unloaded. `initialize` chooses it; otherwise the first
function that needs a plugin loads the default one.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from cyxla.errors import ArgumentError, Error, ForkError, PluginError, refuse_reload
from cyxla.ffi import targets
from cyxla.plugins.advice import load_advice, other_platform_advice
from cyxla.plugins.client import client_code, make_client
from cyxla.plugins.discovery import candidate_for, chosen_by_preference
from cyxla.plugins.jax_environment import set_tpu_variables
from cyxla.plugins.options import OptionValue, checked_options, optional_names
from cyxla.plugins.plugin import Candidate, Plugin
from cyxla.plugins.preload import open_libraries
from cyxla.plugins.thread_cap import (
    THREADS_ENVIRONMENT_VARIABLE,
    check_devices,
    checked_threads,
    threads_from_environment,
)
from cyxla.plugins.xla_flags import check_for_plugin

__all__ = [
    "ErrorInfo",
    "RuntimeInfo",
    "current_platform",
    "dropped_options",
    "error_info",
    "initialize",
    "is_initialized",
    "loaded_candidate",
    "runtime_info",
]

refuse_reload(__name__, "_state" in globals())

# XLA reads it when its library is opened.
_LOG_LEVEL_VARIABLE = "TF_CPP_MIN_LOG_LEVEL"
_IMPORTED_TWICE = (
    "cyxla was imported a second time in this process, and only the first copy knows the plugin"
    " that is loaded; start a new process, and leave cyxla's modules in sys.modules"
)


class RuntimeInfo(NamedTuple):
    """The loaded plugin's properties.

    Attributes:
        api_version: the major and minor version of its PJRT API.
        platform: the platform's name as the plugin reports it.
        aliased_inputs: whether input buffers share host memory, so that inputs are not copied.
        inplace_outputs: whether outputs are read in the buffers' memory, not copied to the host.
        plugin: the plugin, with the options of its client.
        stablehlo_version: the newest StableHLO that it reads, such as "1.20.0"; None if unknown.
        threads: the cap on its thread pool, None if not set.
    """

    api_version: tuple[int, int]
    platform: str
    aliased_inputs: bool
    inplace_outputs: bool
    plugin: Plugin
    stablehlo_version: str | None
    threads: int | None


class ErrorInfo(NamedTuple):
    """The number of errors since the runtime was initialized, and the last one's message."""

    count: int  # type: ignore[assignment]  # tuple has a method of this name
    message: str


class _State(NamedTuple):
    info: RuntimeInfo
    candidate: Candidate
    options: Mapping[str, OptionValue]  # as requested; the plugin may lack some
    jax_targets: bool
    process: int


# Reentrant: registering handlers imports modules of other packages, which may call into cyxla.
_lock = threading.RLock()
_state: _State | None = None


def initialize(
    plugin: Plugin | str | os.PathLike[str] | None = None,
    *,
    platform: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    jax_targets: bool = True,
    threads: int | None = None,
) -> RuntimeInfo:
    """Load the plugin of this process and return its properties.

    Optional: the first function that needs a plugin loads the default one. A process has one
    plugin. A later call returns its properties, with a RuntimeWarning if it requests another
    plugin, other options or `jax_targets=False`. After a failure, call it again.

    Args:
        plugin: a plugin or the path of one. A path is loaded with the default options of
            `platform`, "cpu" if not given. None means the plugin that `find_plugin` returns for
            `platform`.
        platform: the platform to find a plugin for.
        options: client options, which add to or replace the plugin's. A value's Python type
            matters: 1 and 1.0 differ.
        jax_targets: register the FFI handlers in JAX's packages, which `jnp.linalg` needs, and the
            user's earlier ones (`register_ffi_target`), with a RuntimeWarning for each that the
            plugin refuses. False registers none; a later `register_ffi_target` still registers.
        threads: the maximum size of the plugin's thread pool, at least `cpu_device_count` and at
            most 256 for each CPU of the machine. None means the environment variable
            `CYXLA_NUM_THREADS`; if that is unset, the plugin decides.

    Raises:
        PluginError: the plugin does not exist or cannot be loaded, does not know an option, or
            would abort on the environment variable XLA_FLAGS (checked for "cpu" only).
        ArgumentError: arguments contradict each other, `threads` differs from the loaded plugin's,
            or `threads`, `cpu_device_count`, PJRT_NPROC or NPROC is too large.
        ForkError: this process was forked after the runtime was initialized.
        Error: this is a subinterpreter, or the extension module is not installed.
    """
    if not isinstance(jax_targets, bool):
        raise ArgumentError(f"jax_targets must be True or False, got {jax_targets!r}")
    if plugin is not None and not isinstance(plugin, Plugin | str | os.PathLike):
        raise ArgumentError(
            f"plugin is {plugin!r} ({type(plugin).__name__}); give a cyxla.Plugin or the path "
            "of one"
        )
    if threads is not None:
        checked_threads(threads)
    options = {} if options is None else options
    if _state is None:
        chosen = candidate_for(plugin, platform)
        was_preferred = plugin is None and platform is None and chosen_by_preference()
        advice = other_platform_advice(chosen.plugin.platform, was_preferred=was_preferred)
        with _lock:
            if _state is None:
                return _load(chosen, advice, options, jax_targets, threads).info
    state = _own_state()
    asked = _asked_otherwise(state, plugin, platform, options, jax_targets)
    if asked:
        loaded = state.info.plugin
        warnings.warn(
            f"this process already runs the plugin {loaded.path} ({loaded.source}) with the "
            f"options {dict(loaded.create_options)}; ignored: {'; '.join(asked)}. A process loads "
            "one plugin: call cyxla.initialize before anything else needs it",
            RuntimeWarning,
            stacklevel=2,
        )
    if threads is not None and threads != state.info.threads:
        raise ArgumentError(
            f"threads={threads} comes too late: the plugin was loaded with threads="
            f"{state.info.threads}, and its pool keeps its size. Call "
            f"cyxla.initialize(threads={threads}) before anything else needs the plugin, or set "
            f"{THREADS_ENVIRONMENT_VARIABLE}"
        )
    return state.info


def runtime_info() -> RuntimeInfo:
    """Return the loaded plugin's properties, after loading the default plugin if necessary.

    Raises:
        PluginError: the default plugin cannot be loaded.
    """
    return initialize() if _state is None else _own_state().info


def is_initialized() -> bool:
    """Return whether this process has loaded its plugin.

    Stays true after the shutdown at exit, because a plugin cannot be loaded again. False in a
    forked child, which cannot load one either.
    """
    return _state is not None and _state.process == os.getpid()


def current_platform() -> str | None:
    """Return JAX's name of the loaded plugin's platform, None if no plugin is loaded."""
    return None if _state is None else _state.info.plugin.platform


def dropped_options() -> tuple[str, ...]:
    """Return cyxla's default client options that the loaded plugin does not know."""
    state = _own_state()
    return tuple(sorted(state.options.keys() - state.info.plugin.create_options.keys()))


def loaded_candidate() -> Candidate:
    """Return the candidate that was loaded.

    Raises:
        Error: no plugin is loaded in this process.
    """
    return _own_state().candidate


def error_info() -> ErrorInfo:
    """Return the number of errors since the runtime was initialized, and the last one's message.

    Counts every failed call, from any thread and language. (0, "") before initialization.
    """
    return ErrorInfo(0, "") if _state is None else ErrorInfo(*_extension().error_info())


def _load(
    candidate: Candidate,
    advice: str,
    options: Mapping[str, Any],
    jax_targets: bool,
    threads: int | None,
) -> _State:
    global _state
    plugin = candidate.plugin
    create_options: dict[str, OptionValue] = {}
    for some in (plugin.create_options, options):
        create_options |= checked_options(
            some, plugin=candidate.described, platform=plugin.platform, known=candidate.known
        )
    optional = (
        optional_names(plugin.platform, plugin.create_options, candidate.known) - options.keys()
    )
    if threads is None:
        threads = threads_from_environment()
    check_devices(create_options, threads)
    extension = _extension()
    if extension.loaded_runtime() is not None:
        raise Error(_IMPORTED_TWICE)
    os.environ.setdefault(_LOG_LEVEL_VARIABLE, "1")
    if plugin.platform == "tpu":
        set_tpu_variables()
    if plugin.platform == "cpu":  # a client in a child process would take a GPU's memory
        check_for_plugin(candidate.described, client_code(plugin, create_options, optional))
    lost = open_libraries(plugin.path, plugin.source, plugin.preload)
    try:
        loaded, used = make_client(
            extension.load_runtime, str(plugin.path), create_options, optional, threads
        )
    except PluginError as error:
        text = f"{candidate.described} cannot be used: {error}"
        library = candidate.library
        distribution = plugin.source if library is None else library.distribution
        lines = [text, *lost, load_advice(plugin.platform, distribution, text), advice]
        raise PluginError("\n".join(filter(None, lines))) from error
    info = RuntimeInfo(
        api_version=loaded.api_version,
        platform=loaded.platform_name,
        aliased_inputs=loaded.aliased_inputs,
        inplace_outputs=loaded.inplace_outputs,
        plugin=plugin._replace(create_options=MappingProxyType(used)),
        stablehlo_version=loaded.stablehlo_version,
        threads=threads,
    )
    atexit.register(extension.shutdown)
    state = _State(info, candidate, create_options, jax_targets, os.getpid())
    try:
        targets.attach(
            plugin.platform,
            extension.register_ffi_handler,
            register_earlier=jax_targets,
            register_gpu=extension.register_gpu_custom_call,
            library=plugin.path,
        )
    finally:
        # Set last, so that other threads find the handlers registered, and even after an error,
        # because the plugin is loaded.
        _state = state
    return state


def _own_state() -> _State:
    """Return the runtime's state; raise ForkError in a forked child."""
    if _state is None:
        raise Error("the runtime is not initialized; call cyxla.initialize")
    if _state.process != os.getpid():
        raise ForkError(
            f"process {os.getpid()} was forked from process {_state.process} after that had "
            "initialized the runtime; its threads do not exist here. Start worker processes with "
            'multiprocessing.get_context("spawn") or "forkserver", or fork before cyxla is used'
        )
    return _state


def _asked_otherwise(
    state: _State,
    plugin: Plugin | str | os.PathLike[str] | None,
    platform: str | None,
    options: Mapping[str, Any],
    jax_targets: bool,
) -> list[str]:
    """Return descriptions of the requests that the loaded plugin does not meet."""
    loaded = state.info.plugin
    asked = []
    wanted = dict(options)
    if plugin is not None:
        path = Path(plugin.path if isinstance(plugin, Plugin) else plugin)
        if path.resolve() != loaded.path.resolve():
            asked.append(f"the plugin {path}")
        elif isinstance(plugin, Plugin):
            wanted = {**plugin.create_options, **options}
    if platform not in (None, loaded.platform):
        asked.append(f"platform {platform!r}")
    for name, value in wanted.items():
        current = state.options.get(name)
        if type(value) is not type(current) or value != current:
            asked.append(f"the option {name}={value!r}")
    if state.jax_targets and not jax_targets:  # True is the default, so it is not a request
        asked.append("jax_targets=False")
    return asked


def _extension() -> ModuleType:
    try:
        from cyxla import _runtime
    except ImportError as error:
        if "interpreter" in str(error).lower():  # the wording depends on CPython's version
            raise Error(
                f"cyxla works in the main interpreter of a process only: {error}. Use threads or "
                "processes"
            ) from error
        raise Error(
            f"cyxla's extension module cannot be imported ({error}). Install cyxla with pip; in a "
            "source tree that is not installed only plugins can be found"
        ) from error
    return _runtime


def _forget_lock() -> None:
    # A thread of the parent may hold it, and does not exist in the child.
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
