# SPDX-License-Identifier: Apache-2.0
"""`compile_program`: from a Program to an Executable of the process's plugin."""

from __future__ import annotations

import atexit
import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from cyxla import runtime
from cyxla.compilation.cache import Place, entry_of, place_of, usable_folder, warn_of_failures
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

# Where a CUDA plugin looks for ptxas and libdevice.
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
    """Compile a program with the process's plugin, loading the default one if none is loaded yet.

    The GIL is released while the plugin compiles. Safe from several threads at once;
    `compile_programs` does it for a list.

    A plugin that was built from the XLA of the installed jaxlib, so that both have one version, is
    given jaxlib's own XLA options: results then have the bits of `jax.jit`, for programs that are
    not compiled a second time (see `exact`), but for some matrix products in double and complex
    precision. Other plugins use their own.

    Args:
        program: what `cyxla.lower` made.
        options: XLA options for this program alone, such as
            `{"xla_llvm_disable_expensive_passes": True}`, over the plugin's own settings.
        intra_op_threads: 1 keeps elementwise functions, reductions and small matrix products on the
            calling thread, which helps small programs, and programs that run on many threads at
            once. Large matrix products, convolutions and sorts use the plugin's pool all the same.
            None lets XLA decide. For the platform "cpu" only.
        outputs_in_place: results are written straight into the caller's memory instead of copied
            there. Needs jax. Worth it for large outputs. For executions through PJRT.
        route: how the program is executed. "pjrt": PJRT_LoadedExecutable_Execute. "direct": the
            kernels that the plugin compiled are called without the plugin, which takes tens of
            nanoseconds instead of microseconds and gives the same bits; possible for a program
            whose kernels are all there is to it. "auto": directly where that is possible. The
            environment variable CYXLA_DIRECT=0 turns direct calls off. `Executable.route` and
            `route_reason` tell what became of it.
        exact: True keeps the program that the plugin makes by default. Otherwise a program with a
            few small matrix products that cannot be called directly is compiled a second time, with
            these as kernels, and kept so if it then can; it may round in another way. That follows
            from the program alone and is the same in every process.
            `CompileStatistics.second_form_seconds` tells whether it was and what it cost.
        cache: a folder that keeps what was compiled for the next process, made if it is missing.
            None takes the one in the environment variable CYXLA_CACHE_DIR, or none; True takes
            that or "cyxla" in the user's cache folder; False takes none. What is in the folder is
            machine code that runs, so only a folder that no other user may write to is used. Files
            in it can be deleted at any time. `CompileStatistics.from_cache` tells of a hit.
            Programs that need Python are not kept, and none is where XLA_FLAGS names a file.

    Raises:
        ArgumentError: `program` is no Program, an option is no bool, int, float or str, or
            `intra_op_threads` is neither None nor 1, contradicts `options`, or is for a program of
            another platform than "cpu"; `route` is none of the three, or "direct" with
            `outputs_in_place`.
        PluginError: no plugin can be loaded.
        CompileError: the program is for another platform, the plugin does not know an option or a
            custom call, or it cannot compile the program.
        UnsupportedError: `outputs_in_place` without jax, or with one that cannot read the program;
            route "direct" for a program, or with a plugin, that cannot be called directly: with
            the reason.
        RuntimeWarning: the plugin has no outputs in place; results are copied instead. Or the
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
    """The settings for the plugin, without what it or the file system cannot do: RuntimeWarning."""
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
    """Tell a CUDA plugin where ptxas and libdevice are, as JAX does, unless the caller did."""
    folder = cuda_data_folder(info.plugin.path) if info.plugin.platform == "cuda" else None
    if folder is None or _CUDA_FOLDER_OPTION in settings.overrides:
        return settings
    overrides = {**settings.overrides, _CUDA_FOLDER_OPTION: str(folder)}
    optional = settings.optional | {_CUDA_FOLDER_OPTION}
    return settings._replace(overrides=overrides, optional=optional)


def check_platform(program: Program, info: runtime.RuntimeInfo) -> None:
    """Raise CompileError for a program of another platform than the plugin's."""
    if program.platform != info.plugin.platform:
        raise CompileError(
            f"program {program.name!r} was lowered for {program.platform!r}, but the plugin of this"
            f" process, {info.plugin.path}, is for {info.plugin.platform!r}; lower it with"
            f" platform={info.plugin.platform!r}, or call"
            f" cyxla.initialize(platform={program.platform!r}) before anything else needs a plugin"
        )


def compile_checked(request: CompileRequest) -> CompiledPair:
    """Compile a program as requested; its arguments were checked."""
    from cyxla import _runtime

    if request.program.needs_python:
        request = _prepare_host_callbacks(request)
    wanted = request.settings.route
    if wanted.route == "direct":  # insisted on at the end: the second form may be the direct one
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
        # Exit steps run in the reverse of their order here. This one waits for callbacks in flight,
        # which need what JAX's own step takes down, and JAX may have come after the runtime.
        atexit.register(_runtime.shutdown)
    if route.route == "auto":
        return request.with_settings(route=route._replace(route="pjrt", reason=_CALLS_PYTHON))
    return request


def _compile_form(request: CompileRequest) -> CompiledPair:
    place = place_of(request)
    cached = _from_cache(place, request)
    if cached is not None:
        return cached
    program = request.program
    given = program
    if request.settings.outputs_in_place:
        given, destinations = _with_destinations(program)
        request = request._replace(destinations=destinations)
    request = request._replace(keeps_serialized=place is not None)
    first_error: CompileError | None = None
    for code in _readable_forms(given, request.info.stablehlo_version):
        try:
            compiled = _compile_code(request, code)
        except CompileError as error:
            first_error = first_error or error
            if not is_unreadable(error):
                break
        else:
            if place is not None and compiled.serialized:
                place.write(entry_of(compiled, request.destinations))
            statistics = CompileStatistics.of(compiled.measured, program, request.destinations)
            return CompiledPair(compiled.executable, statistics)
    assert first_error is not None
    raise CompileError(explain(request, first_error)) from first_error


def _from_cache(place: Place | None, request: CompileRequest) -> CompiledPair | None:
    from cyxla import _runtime

    entry = None if place is None else place.read()
    if entry is None:
        return None
    request = request._replace(destinations=entry.destinations)
    try:
        loaded = _runtime.load_code(request, entry.serialized, entry.marks_donation)
    except Error:  # the plugin's reason is clearer when it compiles the program again
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
    """The program in the forms that the plugin may be able to read, the likeliest first."""
    if plugin_version is None or not is_newer(program.stablehlo_version, plugin_version):
        yield program.stablehlo
    else:
        # The text below needs neither jaxlib nor a version.
        with contextlib.suppress(ImportError, UnsupportedError):
            yield for_version(program, plugin_version)
    # Bytecode of dialects beside StableHLO has no versions, so an older reader may refuse it where
    # it reads the same operations as text.
    yield program.text.encode()
