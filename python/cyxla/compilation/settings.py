# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of `compile_program` and turns them into settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from cyxla.compilation import routes
from cyxla.errors import ArgumentError
from cyxla.plugins.options import is_utf8
from cyxla.plugins.thread_cap import THREADS_ENVIRONMENT_VARIABLE
from cyxla.program.program import Program
from cyxla.runtime import RuntimeInfo

__all__ = [
    "CACHE_ENVIRONMENT_VARIABLE",
    "Cache",
    "CompileOption",
    "Settings",
    "check_settings",
    "requested_folder",
]

CompileOption: TypeAlias = bool | int | float | str
Cache: TypeAlias = str | os.PathLike[str] | bool | None

CACHE_ENVIRONMENT_VARIABLE = "CYXLA_CACHE_DIR"
"""The environment variable with the cache folder for compiled programs."""


class Settings(NamedTuple):
    """The checked settings of a compilation.

    `overrides` apply on top of `base_options`, XLA's compile options as JAX serializes them; if
    those are empty, on top of the plugin's defaults. An `optional` override is dropped if the
    plugin does not know it.
    """

    overrides: Mapping[str, CompileOption]
    optional: frozenset[str]
    outputs_in_place: bool
    route: routes.RouteRequest
    exact: bool
    base_options: bytes = b""
    cache_folder: Path | None = None

    def for_small_matrices(self) -> Settings | None:
        """Return the settings that turn small matrix products into kernels, None if already set."""
        if _THREADS_OPTION in self.overrides and _FUSIONS_OPTION in self.overrides:
            return None
        wanted: dict[str, CompileOption] = {_THREADS_OPTION: False, _FUSIONS_OPTION: ""}
        return self._replace(
            overrides={**wanted, **self.overrides},
            optional=self.optional | {_FUSIONS_OPTION},
        )


class CompileRequest(NamedTuple):
    """A compilation for the C++ core: the program, the settings and the plugin.

    Attributes:
        program: the program without the parameters that cyxla adds.
        settings: the settings that the plugin supports.
        info: the loaded plugin.
        destinations: the outputs for which the code takes a donated destination after its inputs.
        keeps_serialized: whether to return the compiled program as bytes for the cache.
    """

    program: Program
    settings: Settings
    info: RuntimeInfo
    destinations: tuple[int, ...] = ()
    keeps_serialized: bool = False

    def with_settings(self, **changes: Any) -> CompileRequest:
        """Return the request with some of its settings replaced."""
        return self._replace(settings=self.settings._replace(**changes))


# These make XLA compute on the calling thread. The first does not cover matrix products that become
# fusions of the YNN library, nor the pass that splits kernels for the thread pool.
_THREADS_OPTION: Final = "xla_cpu_multi_thread_eigen"
_FUSIONS_OPTION: Final = "xla_cpu_experimental_ynn_fusion_type"
_PASSES_OPTION: Final = "xla_disable_hlo_passes"
_SPLITTING_PASS: Final = "cpu-parallel-task-assigner"


def check_settings(
    programs: Sequence[Program],
    options: Mapping[str, CompileOption] | None,
    intra_op_threads: int | None,
    outputs_in_place: bool,
    route: str,
    exact: bool,
    cache: Cache = None,
) -> Settings:
    """Return the settings, after the checks that do not need a plugin.

    Raises:
        ArgumentError, UnsupportedError: see `compile_program`.
    """
    for program in programs:
        if not isinstance(program, Program):
            raise ArgumentError(
                f"program must be a cyxla.Program, got {type(program).__name__}; cyxla.lower makes"
                " one"
            )
    overrides = _checked_options(options)
    optional: set[str] = set()
    if intra_op_threads is not None:
        _check_threads(intra_op_threads, overrides)
        for program in programs:
            if program.platform != "cpu":
                raise ArgumentError(
                    f"intra_op_threads is for the platform 'cpu', and program {program.name!r} was"
                    f" lowered for {program.platform!r}; leave it out"
                )
        passes = (overrides.get(_PASSES_OPTION), _SPLITTING_PASS)
        overrides[_PASSES_OPTION] = ",".join(str(names) for names in passes if names)
        overrides[_THREADS_OPTION] = False
        if _FUSIONS_OPTION not in overrides:
            overrides[_FUSIONS_OPTION] = ""
            optional.add(_FUSIONS_OPTION)
    for name, flag in (("outputs_in_place", outputs_in_place), ("exact", exact)):
        if not isinstance(flag, bool | np.bool_):
            raise ArgumentError(f"{name} must be a bool, got {flag!r}")
    request = routes.requested_route(route, outputs_in_place)
    folder = requested_folder(cache)
    return Settings(
        overrides,
        frozenset(optional),
        bool(outputs_in_place),
        request,
        bool(exact),
        cache_folder=folder,
    )


def requested_folder(cache: Cache) -> Path | None:
    """Return the cache folder from the argument or the environment, None for no cache.

    Raises:
        ArgumentError: `cache` is neither a path, a bool nor None.
    """
    if cache is False:
        return None
    if cache is None or cache is True:
        named = os.environ.get(CACHE_ENVIRONMENT_VARIABLE)
        if named:
            return Path(os.path.expanduser(named)).absolute()
        root = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
        return Path(root, "cyxla") if cache else None
    path = os.fspath(cache) if isinstance(cache, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        raise ArgumentError(
            f"cache must be a folder, a bool or None, got {cache!r}; None leaves it to the"
            f" environment variable {CACHE_ENVIRONMENT_VARIABLE}"
        )
    return Path(os.path.expanduser(path)).absolute()


def _checked_options(options: Mapping[str, CompileOption] | None) -> dict[str, CompileOption]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ArgumentError(
            f"options must be a mapping of XLA option names to values, got {type(options).__name__}"
        )
    return {_checked_name(name): _checked_value(name, value) for name, value in options.items()}


def _check_threads(intra_op_threads: object, overrides: Mapping[str, CompileOption]) -> None:
    is_number = isinstance(intra_op_threads, int | np.integer)
    if not is_number or isinstance(intra_op_threads, bool) or intra_op_threads != 1:
        raise ArgumentError(
            f"intra_op_threads must be None or 1, got {intra_op_threads!r}: XLA's kernels use one"
            " thread or the plugin's whole pool; cap the pool with cyxla.initialize(threads=n) or"
            f" {THREADS_ENVIRONMENT_VARIABLE}"
        )
    if overrides.get(_THREADS_OPTION, False) is not False:
        raise ArgumentError(
            f"intra_op_threads=1 contradicts the compile option {_THREADS_OPTION!r}, which is"
            f" {overrides[_THREADS_OPTION]!r}; leave one of them out"
        )


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name or not is_utf8(name):
        raise ArgumentError(f"the name of a compile option must be a string, got {name!r}")
    return name


def _checked_value(name: str, value: object) -> CompileOption:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bool | int | float | str):
        raise ArgumentError(
            f"compile option {name!r} must be a bool, int, float or str, got"
            f" {type(value).__name__} {value!r}"
        )
    if isinstance(value, str) and not is_utf8(value):
        raise ArgumentError(f"compile option {name!r} must be Unicode text, got {value!r}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ArgumentError(f"compile option {name!r} must fit in 64 bits, got {value}")
    return value
