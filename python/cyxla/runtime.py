# SPDX-License-Identifier: Apache-2.0
"""The one plugin of the process: loading it, and what it tells about itself.

A process loads one plugin, once: plugins cannot be unloaded. `initialize` may be called to choose
it; otherwise the first function that needs a plugin loads the default one.
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

# XLA reads it once, while its library is opened.
_LOG_LEVEL_VARIABLE = "TF_CPP_MIN_LOG_LEVEL"
_IMPORTED_TWICE = (
    "cyxla was imported a second time in this process, and only the first copy knows the plugin"
    " that is loaded; start a new process, and leave cyxla's modules in sys.modules"
)


class RuntimeInfo(NamedTuple):
    """What is known about the loaded plugin.

    Attributes:
        api_version: the major and minor version of its PJRT API.
        platform: the platform's name as the plugin reports it.
        aliased_inputs: whether input buffers share host memory, so that inputs are not copied.
        inplace_outputs: whether outputs are read in the buffers' memory, not copied to the host.
        plugin: the plugin, with the client options that it was created with.
        stablehlo_version: the newest StableHLO that it reads, such as "1.20.0"; None if untold.
        threads: the cap on its thread pool, None if none was asked for.
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
    options: Mapping[str, OptionValue]  # as asked for: the plugin may have dropped some
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
    """Load the plugin of this process and return its details.

    Calling it is optional: the first function that needs a plugin loads the default one. There is
    one plugin per process: a later call returns the details of the first, with a RuntimeWarning if
    it asks for another plugin, other options or none of JAX's targets. After a failure it can be
    called again.

    Args:
        plugin: a plugin, or the path of one; a path is loaded with the default options of
            `platform`, "cpu" if not given. None takes what `find_plugin` finds for `platform`.
        platform: the platform to find a plugin for.
        options: client options; they add to, or replace, the plugin's own. Each value is handed
            over as its own type, so 1 and 1.0 differ.
        jax_targets: registers the FFI handlers that JAX's packages ship (`jnp.linalg` needs them)
            and the targets registered earlier with `register_ffi_target`, with a RuntimeWarning for
            one that the plugin does not take. False registers none; a later `register_ffi_target`
            still registers at once.
        threads: the most threads that the plugin's pool may have, at least `cpu_device_count` and
            at most 256 for each CPU of the machine. None takes `CYXLA_NUM_THREADS` of the
            environment; without that the plugin decides.

    Raises:
        PluginError: there is no such plugin, it cannot be loaded, it knows no such option, or it
            would end the process over the environment variable XLA_FLAGS (found for "cpu" only).
        ArgumentError: arguments that contradict each other, `threads` after the plugin was loaded
            without, or too many threads, also by `cpu_device_count`, PJRT_NPROC or NPROC.
        ForkError: this process was forked from one that had initialized the runtime.
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
    """Return the loaded plugin's details; load the default plugin if there is none yet.

    Raises:
        PluginError: no plugin is loaded, and the default one cannot be.
    """
    return initialize() if _state is None else _own_state().info


def is_initialized() -> bool:
    """Return whether this process has loaded its plugin.

    It stays true after the shutdown at exit: a plugin cannot be loaded again. In a forked child it
    is false, though no plugin can be loaded there.
    """
    return _state is not None and _state.process == os.getpid()


def current_platform() -> str | None:
    """Return the platform of the loaded plugin as JAX names it, None before one is loaded."""
    return None if _state is None else _state.info.plugin.platform


def dropped_options() -> tuple[str, ...]:
    """Return cyxla's own client options that the loaded plugin does not know."""
    state = _own_state()
    return tuple(sorted(state.options.keys() - state.info.plugin.create_options.keys()))


def loaded_candidate() -> Candidate:
    """Return the loaded plugin with what discovery knew of it.

    Raises:
        Error: no plugin is loaded in this process.
    """
    return _own_state().candidate


def error_info() -> ErrorInfo:
    """Return how many errors there have been in this process since the runtime was initialized.

    Every call that failed counts, from any thread and in any language. It is (0, "") before.
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
        text = str(error)
        if str(plugin.path) not in text:
            text = f"{candidate.described} cannot be used: {text}"
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
        # Not before: other threads then take the handlers for granted. And in any case: the plugin
        # is loaded whatever becomes of the handlers.
        _state = state
    return state


def _own_state() -> _State:
    """Return the runtime's state, in the process that initialized it only."""
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
    """Return what a later call asks for that the loaded plugin is not, in words."""
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
    if state.jax_targets and not jax_targets:  # true is the default, so it asks for nothing
        asked.append("jax_targets=False")
    return asked


def _extension() -> ModuleType:
    try:
        from cyxla import _runtime
    except ImportError as error:
        if "interpreter" in str(error).lower():  # as CPython's versions word it
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
    # The thread of the parent that may have held it does not exist in the child.
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
