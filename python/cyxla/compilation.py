# SPDX-License-Identifier: Apache-2.0
"""`compile_program`: from a Program to an Executable of the process's plugin."""

from __future__ import annotations

import atexit
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cyxla import ffi, host_callbacks, runtime
from cyxla.compile_errors import explain, is_unreadable
from cyxla.compile_settings import Cache, CompileOption, Settings, check_settings
from cyxla.compiled_pair import CompiledPair, CompileStatistics
from cyxla.debug_options import jaxlib_debug_options
from cyxla.errors import CompileError, Error, UnsupportedError
from cyxla.executable_cache import Entry, Place, place_of, usable_folder, warn_of_failures
from cyxla.plugin_preload import cuda_data_folder
from cyxla.program import Program
from cyxla.program_file import is_newer
from cyxla.small_matrices import chosen_form

if TYPE_CHECKING:
    from cyxla._runtime import Executable

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
    info = runtime.ensure_loaded()
    check_platform(program, info)
    settings = usable_settings(settings, info, stacklevel=3)
    compiled = compile_checked(program, settings, info)
    warn_of_failures(settings.cache_folder, stacklevel=2)
    return compiled


def usable_settings(settings: Settings, info: runtime.RuntimeInfo, *, stacklevel: int) -> Settings:
    """The settings for the plugin, without what it or the file system cannot do: RuntimeWarning."""
    settings = settings._replace(debug_options=jaxlib_debug_options(info.plugin.path))
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


def compile_checked(
    program: Program, settings: Settings, info: runtime.RuntimeInfo
) -> CompiledPair:
    """Compile a program that was checked, with settings that were."""
    from cyxla import _runtime

    if program.needs_python:
        settings = _prepare_host_callbacks(program, settings)
    # A program may become direct in its second form only, so "direct" is insisted on at the end.
    lenient = settings._replace(route=settings.route._replace(route="auto"))
    is_direct_wanted = settings.route.route == "direct"
    first = _compile_form(program, lenient if is_direct_wanted else settings, info)
    compiled = CompiledPair(
        *chosen_form(program, settings, first, lambda second: _compile_form(program, second, info))
    )
    if is_direct_wanted and compiled.executable.route != "direct":
        raise UnsupportedError(
            f"program {program.name!r} cannot be called directly: {first[0].route_reason}; leave"
            " route to 'auto' to execute it through PJRT"
        )
    _runtime.set_statistics(*compiled)
    return compiled


def _prepare_host_callbacks(program: Program, settings: Settings) -> Settings:
    from cyxla import _runtime

    if settings.route.route == "direct":
        raise UnsupportedError(
            f"program {program.name!r} cannot be called directly: {_CALLS_PYTHON}; leave route to"
            " 'auto' to execute it through PJRT"
        )
    for target, address in _runtime.host_callback_handlers().items():
        ffi.register_own(target, address)
    if _runtime.use_host_callbacks(host_callbacks.answer):
        # Exit steps run in the reverse of their order here. This one waits for callbacks in flight,
        # which need what JAX's own step takes down, and JAX may have come after the runtime.
        atexit.register(_runtime.shutdown)
    if settings.route.route == "auto":
        return settings._replace(route=settings.route._replace(route="pjrt", reason=_CALLS_PYTHON))
    return settings


def _compile_form(
    program: Program, settings: Settings, info: runtime.RuntimeInfo
) -> tuple[Executable, CompileStatistics]:
    place = place_of(program, settings, info)
    cached = _from_cache(place, program, settings)
    if cached is not None:
        return cached
    given, destinations = program, tuple[int, ...]()
    if settings.outputs_in_place:
        given, destinations = _with_destinations(program)
    first_error: CompileError | None = None
    for code in _readable_forms(given, info.stablehlo_version):
        try:
            executable, measured = _compile_code(
                code, program, settings, destinations, keep=place is not None
            )
        except CompileError as error:
            first_error = first_error or error
            if not is_unreadable(error):
                break
        else:
            if place is not None:
                _keep(place, measured, destinations)
            return executable, _statistics(measured, program, destinations)
    assert first_error is not None
    raise CompileError(explain(program, info, first_error)) from first_error


def _from_cache(
    place: Place | None, program: Program, settings: Settings
) -> tuple[Executable, CompileStatistics] | None:
    from cyxla import _runtime

    entry = None if place is None else place.read()
    if entry is None:
        return None
    start = time.perf_counter()
    try:
        executable = _runtime.load_code(
            entry.serialized,
            program.name,
            [array.array_type for array in program.inputs],
            [array.array_type for array in program.outputs],
            entry.marks_donation,
            [array.name for array in program.inputs],
            entry.destinations,
            *settings.route,
            output_names=[array.name for array in program.outputs],
        )
    except Error:  # whatever the plugin has against it, compiling again says it better
        return None
    measured = {**entry.measured, "seconds": time.perf_counter() - start}
    statistics = _statistics(measured, program, entry.destinations)
    return executable, statistics._replace(from_cache=True)


def _keep(place: Place, measured: dict[str, Any], destinations: tuple[int, ...]) -> None:
    """Write what was compiled to the cache, and leave the statistics in `measured`."""
    serialized, marks_donation = measured.pop("serialized"), measured.pop("marks_donation")
    if serialized:
        place.write(Entry(serialized, marks_donation, destinations, measured))


def _compile_code(
    code: bytes,
    program: Program,
    settings: Settings,
    destinations: Sequence[int],
    *,
    keep: bool,
) -> tuple[Executable, dict[str, Any]]:
    from cyxla import _runtime

    try:
        return _runtime.compile_code(
            code,
            "mlir",
            settings.overrides,
            program.name,
            [array.array_type for array in program.inputs],
            [array.array_type for array in program.outputs],
            program.needs_python,
            [array.name for array in program.inputs],
            destinations,
            *settings.route,
            output_names=[array.name for array in program.outputs],
            debug_options=settings.debug_options,
            host_callbacks=program.host_callbacks,
            keep=keep,
        )
    except CompileError as error:
        unknown = {name for name in settings.optional if f"option: '{name}'" in str(error)}
        if not unknown:
            raise
    known = {name: value for name, value in settings.overrides.items() if name not in unknown}
    fewer = settings._replace(overrides=known, optional=settings.optional - unknown)
    return _compile_code(code, program, fewer, destinations, keep=keep)


def _statistics(
    measured: Mapping[str, Any], program: Program, destinations: Sequence[int]
) -> CompileStatistics:
    # Plugins count the table of a tuple of results as output, and the destinations as arguments.
    own = {"output_bytes": sum(output.size_bytes for output in program.outputs)}
    if measured["argument_bytes"] is not None:
        added = sum(program.outputs[output].size_bytes for output in destinations)
        own["argument_bytes"] = measured["argument_bytes"] - added
    flops = program.flops if measured["flops"] is None else measured["flops"]
    return CompileStatistics(**{**measured, **own, "flops": flops})


def _with_destinations(program: Program) -> tuple[Program, tuple[int, ...]]:
    try:
        from cyxla import stablehlo
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
        try:
            from cyxla import stablehlo

            yield stablehlo.for_version(program, plugin_version)
        except (ImportError, UnsupportedError):  # the text needs neither jaxlib nor a version
            pass
    # Bytecode of dialects beside StableHLO has no versions, so an older reader may refuse it where
    # it reads the same operations as text.
    yield program.text.encode()
