# SPDX-License-Identifier: Apache-2.0
"""`compile_program`, which makes an Executable of the process's plugin from a Program."""

from __future__ import annotations

import atexit
import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from cyxla import runtime
from cyxla.compilation.cache import Location, entry_of, location_of, usable_folder, warn_of_failures
from cyxla.compilation.debug_options import jaxlib_compile_options
from cyxla.compilation.errors import explain
from cyxla.compilation.settings import (
    Cache,
    CompileOption,
    CompileRequest,
    Settings,
    check_settings,
)
from cyxla.compilation.small_matrices import chosen_form
from cyxla.compilation.statistics import CompiledPair, CompileStatistics
from cyxla.errors import CompileError, Error, UnsupportedError
from cyxla.ffi.targets import register_own
from cyxla.plugins.messages import is_unreadable, unknown_compile_options
from cyxla.plugins.preload import cuda_data_folder
from cyxla.program import host_callbacks
from cyxla.program.program import Program
from cyxla.program.versions import for_version, is_newer

if TYPE_CHECKING:
    from cyxla._runtime import Compiled

__all__ = [
    "CompileStatistics",
    "check_platform",
    "compile_checked",
    "compile_program",
    "usable_settings",
]


_CALLS_PYTHON: Final = "it calls back into Python"

# The folder where a CUDA plugin looks for ptxas and libdevice.
_CUDA_FOLDER_OPTION: Final = "xla_gpu_cuda_data_dir"


def compile_program(
    program: Program,
    *,
    options: Mapping[str, CompileOption] | None = None,
    intra_op_threads: int | None = None,
    outputs_in_place: bool = False,
    route: str = "auto",
    exact: bool = False,
    cache: Cache = None,
) -> CompiledPair:
    """Compile a program with the process's plugin, loading the default plugin if necessary.

    Returns the executable and the statistics of the compilation. Releases the GIL while the plugin
    compiles. Thread-safe; `compile_programs` compiles a list.

    A plugin with the same version of XLA as the installed jaxlib is given jaxlib's XLA options.
    Results then equal those of `jax.jit` bit by bit, except for programs that are compiled a second
    time (see `exact`) and for some matrix products in double and complex precision. Other plugins
    use their own options.

    Args:
        program: a program from `cyxla.lower`.
        options: XLA options for this program, such as
            `{"xla_llvm_disable_expensive_passes": True}`, on top of the plugin's settings.
        intra_op_threads: 1 keeps elementwise functions, reductions and small matrix products on the
            calling thread, which helps small programs and programs that run on many threads at
            once. Large matrix products, convolutions and sorts still use the plugin's thread pool.
            None lets XLA decide. For the platform "cpu" only.
        outputs_in_place: write results directly into the caller's memory instead of copying them.
            Helps large outputs of executions through PJRT. Needs jax.
        route: how to execute the program. "pjrt": with PJRT_LoadedExecutable_Execute. "direct": by
            calling the plugin's compiled kernels without the plugin, which takes tens of
            nanoseconds instead of microseconds, gives the same bits, and works for programs that
            consist of kernels only. "auto": directly if possible. The environment variable
            CYXLA_DIRECT=0 turns direct calls off. `Executable.route` and `route_reason` report the
            result.
        exact: True keeps the program that the plugin makes by default. Otherwise a program that
            cannot be called directly because of a few small matrix products is compiled a second
            time, with these as kernels, and kept if it can then be called directly; it may round
            differently. The choice depends on the program alone and is the same in every process.
            `CompileStatistics.second_form_seconds` reports the cost.
        cache: a folder that keeps compiled programs for later processes, made if missing. None
            means the folder in the environment variable CYXLA_CACHE_DIR, or none if unset; True
            means that or "cyxla" in the user's cache folder; False means none. The folder holds
            machine code, so it is used only if no other user can write to it. Its files can be
            deleted at any time. `CompileStatistics.from_cache` reports a hit. Programs that call
            Python are not kept, and none are if XLA_FLAGS names a file.

    Raises:
        ArgumentError: `program` is not a Program, an option is not a bool, int, float or str;
            `intra_op_threads` is neither None nor 1, contradicts `options`, or is given for another
            platform than "cpu"; `route` is invalid, or is "direct" with `outputs_in_place`.
        PluginError: no plugin can be loaded.
        CompileError: the program is for another platform, the plugin does not know an option or a
            custom call, or it cannot compile the program.
        UnsupportedError: `outputs_in_place` without jax, or with one that cannot read the program;
            route "direct" if the program cannot be called directly; the message has the reason.
        RuntimeWarning: the plugin does not support outputs in place, so results are copied; or the
            cache folder cannot be used.
    """
    settings = check_settings(
        [program], options, intra_op_threads, outputs_in_place, route, exact, cache
    )
    info = runtime.runtime_info()
    check_platform(program, info)
    settings = usable_settings(settings, info, stacklevel=3)
    compiled = compile_checked(CompileRequest(program, settings, info))
    warn_of_failures(settings.cache_folder, stacklevel=2)
    return compiled


def usable_settings(settings: Settings, info: runtime.RuntimeInfo, *, stacklevel: int) -> Settings:
    """Return the settings for the plugin; issue a RuntimeWarning for each one that is dropped."""
    library = runtime.loaded_candidate().library
    settings = settings._replace(base_options=jaxlib_compile_options(library))
    settings = _with_cuda_folder(settings, info)
    if settings.cache_folder is not None:
        folder = usable_folder(settings.cache_folder, stacklevel=stacklevel)
        settings = settings._replace(cache_folder=folder)
    if not settings.outputs_in_place or info.inplace_outputs:
        return settings
    warnings.warn(
        f"the plugin {info.plugin.path} ({info.plugin.source}) cannot write outputs in place, so"
        " results are copied; leave outputs_in_place out, or use another plugin",
        RuntimeWarning,
        stacklevel=stacklevel,
    )
    return settings._replace(outputs_in_place=False)


def _with_cuda_folder(settings: Settings, info: runtime.RuntimeInfo) -> Settings:
    """Add the folder of ptxas and libdevice for a CUDA plugin, as JAX does, unless it is set."""
    folder = cuda_data_folder(info.plugin.path) if info.plugin.platform == "cuda" else None
    if folder is None or _CUDA_FOLDER_OPTION in settings.overrides:
        return settings
    overrides = {**settings.overrides, _CUDA_FOLDER_OPTION: str(folder)}
    optional = settings.optional | {_CUDA_FOLDER_OPTION}
    return settings._replace(overrides=overrides, optional=optional)


def check_platform(program: Program, info: runtime.RuntimeInfo) -> None:
    """Raise CompileError if the program is for another platform than the plugin."""
    if program.platform != info.plugin.platform:
        raise CompileError(
            f"program {program.name!r} was lowered for {program.platform!r}, but the plugin of this"
            f" process, {info.plugin.path}, is for {info.plugin.platform!r}; lower it with"
            f" platform={info.plugin.platform!r}, or call"
            f" cyxla.initialize(platform={program.platform!r}) before anything else needs a plugin"
        )


def compile_checked(request: CompileRequest) -> CompiledPair:
    """Return the compiled program for a checked request."""
    from cyxla import _runtime

    if request.program.needs_python:
        request = _prepare_host_callbacks(request)
    wanted = request.settings.route
    if wanted.route == "direct":  # checked below: only the second form may be direct
        request = request.with_settings(route=wanted._replace(route="auto"))
    first = _compile_form(request)
    compiled = chosen_form(request, first, _compile_form)
    if wanted.route == "direct" and compiled.executable.route != "direct":
        raise UnsupportedError(
            f"program {request.program.name!r} cannot be called directly:"
            f" {first.executable.route_reason}; leave route to 'auto' to execute it through PJRT"
        )
    _runtime.set_statistics(*compiled)
    return compiled


def _prepare_host_callbacks(request: CompileRequest) -> CompileRequest:
    from cyxla import _runtime

    route = request.settings.route
    if route.route == "direct":
        raise UnsupportedError(
            f"program {request.program.name!r} cannot be called directly: {_CALLS_PYTHON}; leave"
            " route to 'auto' to execute it through PJRT"
        )
    for target, address in _runtime.host_callback_handlers().items():
        register_own(target, address)
    if _runtime.use_host_callbacks(host_callbacks.answer):
        # atexit runs functions in reverse order. This one waits for callbacks in flight and must
        # run before JAX's, which frees what they need; JAX may be imported after the runtime.
        atexit.register(_runtime.shutdown)
    if route.route == "auto":
        return request.with_settings(route=route._replace(route="pjrt", reason=_CALLS_PYTHON))
    return request


def _compile_form(request: CompileRequest) -> CompiledPair:
    location = location_of(request)
    cached = _from_cache(location, request)
    if cached is not None:
        return cached
    program = request.program
    given = program
    if request.settings.outputs_in_place:
        given, destinations = _with_destinations(program)
        request = request._replace(destinations=destinations)
    request = request._replace(keeps_serialized=location is not None)
    first_error: CompileError | None = None
    for code in _readable_forms(given, request.info.stablehlo_version):
        try:
            compiled = _compile_code(request, code)
        except CompileError as error:
            first_error = first_error or error
            if not is_unreadable(error):
                break
        else:
            if location is not None and compiled.serialized:
                location.write(entry_of(compiled, request.destinations))
            statistics = CompileStatistics.of(compiled.measured, program, request.destinations)
            return CompiledPair(compiled.executable, statistics)
    assert first_error is not None
    raise CompileError(explain(request, first_error)) from first_error


def _from_cache(location: Location | None, request: CompileRequest) -> CompiledPair | None:
    from cyxla import _runtime

    entry = None if location is None else location.read()
    if entry is None:
        return None
    request = request._replace(destinations=entry.destinations)
    try:
        loaded = _runtime.load_code(request, entry.serialized, entry.marks_donation)
    except Error:  # compile instead; if that fails too, its error is clearer
        return None
    measured = {**entry.measured, "seconds": loaded.measured.seconds}
    statistics = CompileStatistics.of(
        loaded.measured._replace(**measured), request.program, entry.destinations
    )
    return CompiledPair(loaded.executable, statistics._replace(from_cache=True))


def _compile_code(request: CompileRequest, code: bytes) -> Compiled:
    from cyxla import _runtime

    settings = request.settings
    try:
        return _runtime.compile_code(request, code)
    except CompileError as error:
        unknown = unknown_compile_options(error, settings.optional)
        if not unknown:
            raise
    known = {name: value for name, value in settings.overrides.items() if name not in unknown}
    fewer = request.with_settings(overrides=known, optional=settings.optional - unknown)
    return _compile_code(fewer, code)


def _with_destinations(program: Program) -> tuple[Program, tuple[int, ...]]:
    try:
        from cyxla.lowering import stablehlo
    except ImportError as error:
        raise UnsupportedError(
            f"outputs_in_place=True needs jax, to edit program {program.name!r}:"
            f" pip install 'jax>=0.10.2' ({error})"
        ) from error
    return stablehlo.with_destinations(program)


def _readable_forms(program: Program, plugin_version: str | None) -> Iterator[bytes]:
    """Yield the program in the forms that the plugin may be able to read, the likeliest first."""
    if plugin_version is None or not is_newer(program.stablehlo_version, plugin_version):
        yield program.stablehlo
    else:
        # Without jaxlib, or if that version lacks an operation, only the text below is left.
        with contextlib.suppress(ImportError, UnsupportedError):
            yield for_version(program, plugin_version)
    # Bytecode of other dialects than StableHLO has no versions, so an older plugin may refuse it
    # but read the same operations as text.
    yield program.text.encode()
