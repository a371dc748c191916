# SPDX-License-Identifier: Apache-2.0
"""Finds PJRT plugins: shared libraries that compile and run programs for one platform.

`available_plugins` lists them in this order; the first one for a platform is its default:

1. the modules that installed packages name in the entry-point group `cyxla.plugins`, by name
   (see `PluginModule`);
2. the CPU plugins of known packages, newest first: `lammps-jax-pjrt-cpu`,
   `fastatomstruct-xla-cpu`, `xla-cpu-pjrt`;
3. JAX's GPU plugins, `jax-cuda13-pjrt`, `jax-cuda12-pjrt`, `jax-rocm7-pjrt`; then the library in
   the environment variable `TPU_LIBRARY_PATH`, and `libtpu`;
4. other packages in the entry-point groups `xla_plugins` and `jax_plugins`, by name;
5. the libraries in JAX's environment variable `PJRT_NAMES_AND_LIBRARY_PATHS`.

Discovery imports the modules of 1 and finds the packages of 2 to 4 by their files. It opens no
library. `create_options` include the options from JAX's environment variables (see
`jax_environment`). `rejected_plugins` lists the files that this process cannot load.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cyxla.errors import ArgumentError, PluginError
from cyxla.plugins.elf_check import plugin_file_fault
from cyxla.plugins.jax_environment import (
    LIBRARIES_VARIABLE,
    TPU_LIBRARY_VARIABLE,
    environment_options,
    named_libraries,
    tpu_library,
)
from cyxla.plugins.options import (
    OptionValue,
    checked_options,
    default_options,
    known_options,
)
from cyxla.plugins.packages import (
    PACKAGES,
    PLUGIN_GROUPS,
    InstalledLibrary,
    entry_points,
    entry_source,
    installed_libraries,
    installed_library_at,
    same_file,
)
from cyxla.plugins.plugin import (
    ENTRY_POINT_GROUP,
    PLATFORM_ENVIRONMENT_VARIABLE,
    PLATFORM_PREFERENCE,
    PLUGIN_ENVIRONMENT_VARIABLE,
    Candidate,
    Plugin,
    RejectedPlugin,
)
from cyxla.plugins.preload import cuda_libraries

__all__ = [
    "available_plugins",
    "candidate_at",
    "candidate_for",
    "check_platform",
    "check_plugin_file",
    "chosen_by_preference",
    "find_candidate",
    "find_plugin",
    "rejected_plugins",
]

# For "cpu" this is the newest plugin.
_PIP_PACKAGES = {
    "cpu": "lammps-jax-pjrt-cpu",
    "cuda": "'jax-cuda13-plugin[with-cuda]'",
    "rocm": "'jax-rocm7-plugin[with-rocm]'",
    "tpu": "libtpu",
}


def available_plugins() -> tuple[Plugin, ...]:
    """Return every installed plugin in order of preference, the default of each platform first."""
    return tuple(found.plugin for found in _configured_candidates() if isinstance(found, Candidate))


def rejected_plugins() -> tuple[RejectedPlugin, ...]:
    """Return the installed plugins that this process cannot load, each with the reason."""
    return tuple(found for found in _configured_candidates() if isinstance(found, RejectedPlugin))


def find_plugin(platform: str | None = None) -> Plugin:
    """Return the plugin to use for a platform.

    `CYXLA_PJRT_PLUGIN` overrides the installed plugins. The platform defaults to `CYXLA_PLATFORM`,
    then to the first one in `PLATFORM_PREFERENCE` that has a plugin.

    Raises:
        PluginError: the platform is unknown or has no plugin, the file in `CYXLA_PJRT_PLUGIN` is
            not a plugin, or one of JAX's environment variables has an invalid value.
    """
    return find_candidate(platform).plugin


def find_candidate(platform: str | None = None) -> Candidate:
    """Return the candidate for the plugin that `find_plugin` returns; raises the same errors."""
    asked_by = "the argument platform"
    if platform is None and os.environ.get(PLATFORM_ENVIRONMENT_VARIABLE):
        platform = os.environ[PLATFORM_ENVIRONMENT_VARIABLE]
        asked_by = f"the environment variable {PLATFORM_ENVIRONMENT_VARIABLE}"
    path = os.environ.get(PLUGIN_ENVIRONMENT_VARIABLE)
    if path:
        check_platform(platform, asked_by)
        return candidate_at(Path(path), platform, source=PLUGIN_ENVIRONMENT_VARIABLE)
    found = tuple(_candidates())
    candidates = [each for each in found if isinstance(each, Candidate)]
    check_platform(platform, asked_by, tuple(each.plugin for each in candidates))
    for wanted in PLATFORM_PREFERENCE if platform is None else (platform,):
        for candidate in candidates:
            if candidate.plugin.platform == wanted:
                return _configured(candidate)
    raise PluginError(_recipe(platform, found))


def candidate_for(
    plugin: Plugin | str | os.PathLike[str] | None, platform: str | None
) -> Candidate:
    """Return the candidate that the arguments of `cyxla.initialize` select.

    Raises:
        ArgumentError: the plugin is for another platform than `platform`.
        PluginError: no plugin was found, or this process cannot load the file.
    """
    if plugin is None:
        return find_candidate(platform)
    if not isinstance(plugin, Plugin):
        return candidate_at(Path(plugin), platform)
    if platform not in (None, plugin.platform):
        raise ArgumentError(
            f"platform={platform!r} contradicts the plugin {plugin.path}, which is for "
            f"{plugin.platform!r}: leave platform out, or give another plugin"
        )
    path = Path(plugin.path)
    check_plugin_file(path, plugin.source)
    return _candidate_of(plugin._replace(path=path.absolute()), installed_library_at(path))


def chosen_by_preference() -> bool:
    """Return whether `find_plugin()` chooses by `PLATFORM_PREFERENCE` alone."""
    variables = (PLATFORM_ENVIRONMENT_VARIABLE, PLUGIN_ENVIRONMENT_VARIABLE)
    return not any(os.environ.get(variable) for variable in variables)


def candidate_at(path: Path, platform: str | None = None, source: str = "path") -> Candidate:
    """Return the plugin at a path, with the default options of `platform` ("cpu" if None).

    Raises:
        PluginError: this process cannot load the file, the platform is unknown, the file belongs to
            a package for another platform, or one of JAX's environment variables has an invalid
            value.
    """
    check_plugin_file(path, source)
    check_platform(platform, "the argument platform")
    wanted = "cpu" if platform is None else platform
    library = installed_library_at(path)
    if library is not None and library.platform not in (None, wanted):
        raise PluginError(
            f"the PJRT plugin '{path}' ({source}) belongs to {library.source} and is for "
            f"platform {library.platform!r}, not {wanted!r}: ask for "
            f"platform={library.platform!r}, or set "
            f"{PLATFORM_ENVIRONMENT_VARIABLE}={library.platform}"
        )
    # Given a name without a slash, the dynamic loader would search its own folders.
    return _configured(_candidate(wanted, path.absolute(), source, library))


def check_plugin_file(path: Path, source: str) -> None:
    """Raise PluginError if this process cannot load a file as a plugin; the file is not loaded."""
    if (fault := plugin_file_fault(path)) is not None:
        raise PluginError(
            f"cannot load the PJRT plugin '{path}' ({source}): {fault}. "
            "Give the path of a plugin's shared library; `python -m cyxla` lists the installed ones"
        )


def _candidates() -> Iterator[Candidate | RejectedPlugin]:
    """Yield the candidates in order of preference, each file once.

    JAX's environment variables are not applied yet: an invalid value must not fail a process that
    uses another platform.
    """
    seen: list[Path] = []
    for found in (*_entry_point_plugins(), *_package_plugins(), *_named_plugins()):
        path = found.path if isinstance(found, RejectedPlugin) else found.plugin.path
        if path is not None:
            if any(same_file(path, other) for other in seen):
                continue
            seen.append(path)
        yield found


def _configured_candidates() -> Iterator[Candidate | RejectedPlugin]:
    """Yield the candidates with the environment's options, rejected where those are invalid."""
    for found in _candidates():
        if isinstance(found, RejectedPlugin):
            yield found
            continue
        try:
            yield _configured(found)
        except PluginError as error:
            plugin = found.plugin
            yield RejectedPlugin(plugin.source, plugin.path, str(error))


def _configured(candidate: Candidate) -> Candidate:
    """Return the candidate with the client options that JAX's environment variables set.

    Raises:
        PluginError: a variable is invalid, or two contradict each other.
    """
    return _with_options(candidate, environment_options(candidate.plugin.platform))


def _with_options(candidate: Candidate, options: Mapping[str, OptionValue]) -> Candidate:
    plugin = candidate.plugin
    together = MappingProxyType({**plugin.create_options, **options})
    return candidate._replace(plugin=plugin._replace(create_options=together))


def _candidate(
    platform: str, path: Path, source: str, library: InstalledLibrary | None
) -> Candidate:
    """Return the plugin in a file, with cyxla's default options and the libraries to preload."""
    preload = cuda_libraries(path) if platform == "cuda" else ()
    found = _candidate_of(Plugin(platform, path, source, preload=preload), library)
    return _with_options(found, default_options(platform, found.known))


def _candidate_of(plugin: Plugin, library: InstalledLibrary | None) -> Candidate:
    known = None if library is None else known_options(library.distribution, library.version)
    return Candidate(plugin, library, known)


def _package_plugins() -> Iterator[Candidate | RejectedPlugin]:
    for library in _libraries():
        fault = plugin_file_fault(library.path)
        if fault is None and library.platform is None:
            fault = f"the name of its entry point in the group {library.group} names no platform"
        if fault is not None or library.platform is None:
            yield RejectedPlugin(library.source, library.path, str(fault))
            continue
        yield _candidate(library.platform, library.path, library.source, library)


def _libraries() -> Iterator[InstalledLibrary]:
    """Yield the installed libraries; the one in `TPU_LIBRARY_PATH` comes before libtpu."""
    named = tpu_library()
    for library in installed_libraries():
        if named is not None and (library.platform == "tpu" or library.group):
            yield InstalledLibrary(TPU_LIBRARY_VARIABLE, None, "tpu", named)
            named = None
        yield library
    if named is not None:
        yield InstalledLibrary(TPU_LIBRARY_VARIABLE, None, "tpu", named)


def _named_plugins() -> Iterator[Candidate | RejectedPlugin]:
    for platform, path, options in named_libraries():
        fault = options if isinstance(options, str) else None
        if fault is None and path is not None:
            fault = plugin_file_fault(path)
        if fault is not None or path is None or isinstance(options, str):
            yield RejectedPlugin(LIBRARIES_VARIABLE, path, str(fault))
            continue
        candidate = _candidate(platform, path, LIBRARIES_VARIABLE, installed_library_at(path))
        try:
            given = checked_options(
                options, plugin=f"the plugin {path}", platform=platform, known=candidate.known
            )
        except PluginError as error:
            yield RejectedPlugin(LIBRARIES_VARIABLE, path, str(error))
            continue
        yield _with_options(candidate, given)


def _entry_point_plugins() -> Iterator[Candidate | RejectedPlugin]:
    for entry in entry_points(ENTRY_POINT_GROUP):
        source = entry_source(entry)
        try:
            yield _entry_point_plugin(entry.load(), source)
        # A broken third-party module must not break discovery, even if it calls sys.exit().
        except (Exception, SystemExit) as error:
            reason = f"{entry.value} failed: {type(error).__name__}: {error}"
            yield RejectedPlugin(source, None, reason)


def _entry_point_plugin(module: Any, source: str) -> Candidate | RejectedPlugin:
    platform = module.PLATFORM
    path = Path(module.library_path()).absolute()
    if not isinstance(platform, str) or not platform:
        return RejectedPlugin(source, path, f"its PLATFORM is {platform!r}, not a name")
    if (fault := plugin_file_fault(path)) is not None:
        return RejectedPlugin(source, path, fault)
    try:
        options = checked_options(
            getattr(module, "CREATE_OPTIONS", {}),
            plugin="its CREATE_OPTIONS",
            platform=platform,
            known=None,
        )
    except PluginError as error:
        return RejectedPlugin(source, path, str(error))
    plugin = Plugin(platform, path, source, MappingProxyType(options))
    return _candidate_of(plugin, installed_library_at(path))


def check_platform(
    platform: str | None, asked_by: str, plugins: tuple[Plugin, ...] | None = None
) -> None:
    """Raise PluginError for a platform that neither JAX nor an installed plugin supports."""
    if platform is None or platform in PLATFORM_PREFERENCE:
        return
    known = available_plugins() if plugins is None else plugins
    installed = list(dict.fromkeys(plugin.platform for plugin in known))
    if platform in installed:
        return
    alias = " ('gpu' is JAX's name for 'cuda' and 'rocm' together)" if platform == "gpu" else ""
    raise PluginError(
        f"unknown platform {platform!r} in {asked_by}{alias}: "
        f"known are {', '.join(PLATFORM_PREFERENCE)}; installed: {', '.join(installed) or 'none'}"
    )


def _recipe(platform: str | None, candidates: tuple[Candidate | RejectedPlugin, ...]) -> str:
    """Return the error for a platform without a plugin: what to install, and what was found."""
    installed = {
        found.plugin.platform: None for found in candidates if isinstance(found, Candidate)
    }
    rejected = [str(found) for found in candidates if isinstance(found, RejectedPlugin)]
    packages = [
        package.distribution for package in PACKAGES if platform in (None, package.platform)
    ]
    what = "" if platform is None else f" for platform {platform!r}"
    lines = [f"no PJRT plugin{what} is installed."]
    package = _PIP_PACKAGES.get("cpu" if platform is None else platform)
    if package is not None:
        lines.append(f"Install one:  pip install {package}")
    lines.append(f"or set {PLUGIN_ENVIRONMENT_VARIABLE} to the path of a plugin's shared library.")
    if installed:
        lines.append(
            f"Installed are plugins for {', '.join(installed)}: "
            f"choose one with platform= or {PLATFORM_ENVIRONMENT_VARIABLE}."
        )
    lines.append(
        f"Looked for: {', '.join(packages)}; "
        f"the entry-point groups {', '.join((ENTRY_POINT_GROUP, *PLUGIN_GROUPS))}."
    )
    lines.extend(f"Rejected: {line}" for line in rejected)
    return "\n".join(lines)
