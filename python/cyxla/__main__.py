# SPDX-License-Identifier: Apache-2.0
"""`python -m cyxla` prints a report for bug reports; with `--include` the include folders instead.

`python -m cyxla build` builds C libraries.

The exit code is 1 if the default plugin cannot be loaded.

The plugin is loaded in a child process, because it may abort: a GPU plugin does on an unknown flag
in `XLA_FLAGS`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib import metadata
from pathlib import Path

import cyxla
from cyxla import abi, runtime
from cyxla.errors import Error, PluginError, counted
from cyxla.ffi import targets
from cyxla.plugins import advice, discovery
from cyxla.plugins.plugin import (
    PLATFORM_ENVIRONMENT_VARIABLE,
    PLATFORM_PREFERENCE,
    PLUGIN_ENVIRONMENT_VARIABLE,
    Candidate,
)

__all__ = ["main", "print_runtime"]

_DISTRIBUTIONS = ("numpy", "ml_dtypes", "jax", "jaxlib", "scipy")
_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "NPROC", "CUDA_VISIBLE_DEVICES", "CUDA_ROOT")
_PREFIXES = ("CYXLA_", "JAX_", "LIBTPU_", "PJRT_", "TF_CPP_", "TPU_", "XLA_")
_PERF_MAP_VARIABLE = "CYXLA_PERF_MAP"
_LOAD_SECONDS = 120
_NOT_LOADED = "not loaded:"
_LOAD_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from cyxla.__main__ import print_runtime; print_runtime()"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["build"]:
        from cyxla.library.command import main as build

        return build(words[1:])
    parser = argparse.ArgumentParser(
        prog="python -m cyxla",
        description="Print a report for bug reports about cyxla: versions, the plugins found and "
        "rejected, and the properties of the default plugin. 'python -m cyxla build --help' tells "
        "how to build C libraries.",
    )
    parser.add_argument(
        "--include",
        action="store_true",
        help="print the include folders instead, first the C compiler's, then Cython's",
    )
    include = parser.parse_args(words).include
    if hasattr(sys.stdout, "reconfigure"):  # the terminal may not be able to encode a path
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _print_include() if include else _print_report()
    except BrokenPipeError:  # piped into `head`; without this Python reports it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def print_runtime() -> None:
    """Load the default plugin and print its properties, or the error."""
    try:
        from cyxla import _runtime

        print(f"  ABI version: {_runtime.ABI_VERSION}", flush=True)
        info = runtime.runtime_info()
        loaded = _runtime.loaded_runtime()
    except (Error, ImportError) as error:
        print(f"  {_NOT_LOADED} {type(error).__name__}: {error}")
        return
    count, fault = targets.jaxlib_registered()
    print(f"  PJRT API: {info.api_version[0]}.{info.api_version[1]}")
    if loaded is not None:
        print(f"  platform: {info.platform} ({loaded.platform_version})")
        print(f"  dropped options: {', '.join(runtime.dropped_options()) or 'none'}")
    print(f"  options: {dict(info.plugin.create_options)}")
    print(f"  StableHLO: {info.stablehlo_version or 'unknown'}")
    print(f"  StableHLO of JAX: {_jax_stablehlo_version()}")
    print(f"  aliased_inputs: {info.aliased_inputs}")
    print(f"  inplace_outputs: {info.inplace_outputs}")
    print(f"  threads: {'as the plugin decides' if info.threads is None else info.threads}")
    print(f"  direct calls: {_direct_calls()}")
    print(f"  jaxlib's FFI handlers registered: {count}{'' if fault is None else f' ({fault})'}")


def _direct_calls() -> str:
    from cyxla import _runtime
    from cyxla.compilation import routes

    try:
        request = routes.requested_route("auto", outputs_in_place=False)
        reason = request.reason or _runtime.direct_refusal(request.may_fork)
    except Error as error:
        reason = str(error)
    return f"no, {reason}" if reason else "yes"


def _print_include() -> int:
    try:
        print("\n".join(abi.get_include()))
    except Error as error:
        print(f"python -m cyxla: {error}", file=sys.stderr)
        return 1
    return 0


def _print_report() -> int:
    usable = False

    def default_plugin() -> Iterator[str]:
        nonlocal usable
        usable = yield from _default_plugin()

    sections: dict[str, Callable[[], Iterator[str]]] = {
        "Versions": _versions,
        "Plugins, the first of a platform is its default": _plugins,
        "Default plugin": default_plugin,
        "Cache of compiled programs": _cache,
        "Environment variables": _environment,
    }
    for title, lines in sections.items():
        print(f"{title}:", flush=True)
        try:
            for line in lines():
                print(f"  {line}", flush=True)
        except BrokenPipeError:
            raise
        except Exception as error:  # the other sections must still be printed
            print(f"  unknown: {type(error).__name__}: {error}")
    return 0 if usable else 1


def _versions() -> Iterator[str]:
    yield f"cyxla {cyxla.__version__} in {Path(abi.__file__).parent}"
    extension = importlib.util.find_spec("cyxla._runtime")
    yield f"extension module {'is missing' if extension is None else extension.origin}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()})"
    yield f"{platform.platform()}, {os.cpu_count()} CPUs"
    for distribution in _DISTRIBUTIONS:
        try:
            yield f"{distribution} {metadata.version(distribution)}"
        except metadata.PackageNotFoundError:
            yield f"{distribution} is not installed"


def _plugins() -> Iterator[str]:
    found = discovery.available_plugins()
    for plugin in found:
        yield f"{plugin.platform}: {plugin.source}, {plugin.path}"
    if not found:
        yield "none"
    for rejected in discovery.rejected_plugins():
        yield f"rejected: {rejected}"


def _default_plugin() -> Generator[str, None, bool]:
    """Yield lines about the default plugin; return whether it loads."""
    try:
        chosen = discovery.find_candidate()
    except PluginError as error:
        yield from str(error).splitlines()
        return False
    yield f"{chosen.plugin.source}, {chosen.plugin.path}"
    yield f"chosen as {_reason(chosen.plugin.platform)}"
    if faster := _faster(chosen):
        yield faster
    return (yield from _loaded())


def _faster(chosen: Candidate) -> str:
    """Return which plugin is faster than the chosen one; empty if its version is unknown."""
    if chosen.library is None or chosen.known is None or chosen.plugin.platform != "cpu":
        return ""
    installed = [plugin.source for plugin in discovery.available_plugins()]
    return advice.faster_plugin(chosen.library.source, chosen.known, installed)


def _reason(platform: str) -> str:
    if os.environ.get(PLUGIN_ENVIRONMENT_VARIABLE):
        return f"the path in {PLUGIN_ENVIRONMENT_VARIABLE}"
    first = f"the first plugin for {platform!r}"
    if os.environ.get(PLATFORM_ENVIRONMENT_VARIABLE):
        return f"{first}, which {PLATFORM_ENVIRONMENT_VARIABLE} asks for"
    return f"{first}, the first platform with a plugin of {', '.join(PLATFORM_PREFERENCE)}"


def _loaded() -> Generator[str, None, bool]:
    command = [sys.executable, "-c", _LOAD_CODE, json.dumps(sys.path)]
    try:
        child = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LOAD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield f"{_NOT_LOADED} it did not answer within {_LOAD_SECONDS} seconds"
        return False
    lines = [line.strip() for line in child.stdout.splitlines()]
    yield from lines
    if child.returncode != 0:
        ended = f"exit code {child.returncode}"
        if child.returncode < 0:
            ended = signal.Signals(-child.returncode).name
        yield f"{_NOT_LOADED} it ended its process with {ended} and this output:"
        yield from (f"  {line}" for line in child.stderr.splitlines()[-10:])
        return False
    return not any(line.startswith(_NOT_LOADED) for line in lines)


def _cache() -> Iterator[str]:
    try:
        from cyxla.compilation import cache, settings
    except ImportError as error:
        yield f"unknown: {error}"
        return
    folder = settings.requested_folder(None)
    if folder is None:
        yield f"none: {settings.CACHE_ENVIRONMENT_VARIABLE} is not set"
        return
    count, size_bytes = cache.size_of(folder)
    yield f"{folder}: {counted(count, 'program')}, {size_bytes / 1e6:.1f} MB"
    if reason := cache.refusal(folder):
        yield f"not used: {reason}"


def _environment() -> Iterator[str]:
    relevant = {
        name: value
        for name, value in sorted(os.environ.items())
        if name in _VARIABLES or name.startswith(_PREFIXES)
    }
    for name, value in relevant.items():
        is_void = name == _PERF_MAP_VARIABLE and value not in ("", "0", "1")
        yield f"{name}={value}{' (ignored: only 1 has an effect)' if is_void else ''}"
    if not relevant:
        yield "none relevant"


def _jax_stablehlo_version() -> str:
    try:
        from cyxla.lowering import stablehlo

        return stablehlo.current_version()
    except ImportError as error:
        return f"unknown ({error})"


if __name__ == "__main__":
    sys.exit(main())
