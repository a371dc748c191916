# SPDX-License-Identifier: Apache-2.0
"""Finds PJRT plugins: shared libraries that compile and run programs for one platform.

`available_plugins` lists them in this order, and the first of a platform is its default:

1. the modules that installed packages name in the entry-point group `cyxla.plugins`, by name
   (see `PluginModule`); these modules are imported, their libraries are not opened;
2. CPU plugins of known packages, the newest first: `lammps-jax-pjrt-cpu`, `fastatomstruct-xla-cpu`,
   `xla-cpu-pjrt`;
3. JAX's GPU plugins, `jax-cuda13-pjrt`, `jax-cuda12-pjrt`, `jax-rocm7-pjrt`; then the library in
   the environment variable `TPU_LIBRARY_PATH`, and `libtpu`;
4. other packages in the entry-point groups `xla_plugins` and `jax_plugins`, by name;
5. what JAX's environment variable `PJRT_NAMES_AND_LIBRARY_PATHS` names.

The packages of 2 to 4 are found by their files on disk. They are not imported, and no library is
opened before the runtime is initialized. Options that JAX takes from its environment variables
(see `plugin_environment`) are among a plugin's `create_options`. What cannot be a plugin of this
process is left out; `rejected_plugins` tells why.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from cyxla.errors import PluginError
from cyxla.plugin_environment import (
    LIBRARIES_VARIABLE,
    TPU_LIBRARY_VARIABLE,
    environment_options,
    named_libraries,
    tpu_library,
)
from cyxla.plugin_file import plugin_file_fault
from cyxla.plugin_options import (
    KnownOption,
    OptionValue,
    checked_options,
    default_options,
    known_options,
)
from cyxla.plugin_packages import (
    PACKAGES,
    PLUGIN_GROUPS,
    InstalledLibrary,
    entry_points,
    entry_source,
    installed_libraries,
    installed_library_at,
    same_file,
)
from cyxla.plugin_preload import cuda_libraries

__all__ = [
    "ENTRY_POINT_GROUP",
    "PLATFORM_ENVIRONMENT_VARIABLE",
    "PLATFORM_PREFERENCE",
    "PLUGIN_ENVIRONMENT_VARIABLE",
    "OptionValue",
    "Plugin",
    "PluginModule",
    "RejectedPlugin",
    "available_plugins",
    "check_platform",
    "check_plugin_file",
    "chosen_by_preference",
    "find_plugin",
    "plugin_from_path",
    "rejected_plugins",
]

PLATFORM_PREFERENCE = ("cuda", "rocm", "tpu", "cpu")
"""The platforms from the most to the least preferred, where nobody asks for one."""

PLUGIN_ENVIRONMENT_VARIABLE = "CYXLA_PJRT_PLUGIN"
"""Names the environment variable with the path of the plugin to use instead of an installed one."""

PLATFORM_ENVIRONMENT_VARIABLE = "CYXLA_PLATFORM"
"""Names the environment variable with the platform to use where none is asked for."""

ENTRY_POINT_GROUP = "cyxla.plugins"
"""The entry-point group whose entries each name a `PluginModule`."""

# What to install for a platform; of the CPU plugins the newest.
_PIP_PACKAGES = {
    "cpu": "lammps-jax-pjrt-cpu",
    "cuda": "'jax-cuda13-plugin[with-cuda]'",
    "rocm": "'jax-rocm7-plugin[with-rocm]'",
    "tpu": "libtpu",
}


class Plugin(NamedTuple):
    """A PJRT plugin that can be loaded.

    Attributes:
        platform: the platform it compiles for; also the name by which JAX lowers for it.
        path: the shared library.
        source: where it was found: a distribution and its version, an environment variable, or
            "path".
        create_options: the client options that it is created with.
        preload: libraries to load before it, so that the dynamic loader finds them by soname.
    """

    platform: str
    path: Path
    source: str
    create_options: Mapping[str, OptionValue] = MappingProxyType({})
    preload: tuple[Path, ...] = ()


class RejectedPlugin(NamedTuple):
    """A candidate that cannot be loaded: what it is, its path if it has one, and why."""

    source: str
    path: Path | None
    reason: str

    def __str__(self) -> str:
        where = "" if self.path is None else f", {self.path}"
        return f"{self.source}{where}: {self.reason}"


class PluginModule(Protocol):
    """What an entry point of the group `cyxla.plugins` names, usually a module.

    Attributes:
        PLATFORM: the platform that the plugin compiles for, as `Plugin.platform`.
        CREATE_OPTIONS: the client options to create it with.
    """

    PLATFORM: str
    CREATE_OPTIONS: Mapping[str, OptionValue]

    def library_path(self) -> Path:
        """Return the path of the shared library."""


def available_plugins() -> tuple[Plugin, ...]:
    """Return every installed plugin, in the order that the module's documentation states."""
    return tuple(found for found in _configured_candidates() if isinstance(found, Plugin))


def rejected_plugins() -> tuple[RejectedPlugin, ...]:
    """Return what looks like a plugin and cannot be one of this process, with the reasons."""
    return tuple(found for found in _configured_candidates() if isinstance(found, RejectedPlugin))


def find_plugin(platform: str | None = None) -> Plugin:
    """Return the plugin to use for a platform.

    The path in the environment variable `CYXLA_PJRT_PLUGIN` wins over installed plugins. Without a
    platform the one in `CYXLA_PLATFORM` is taken, and without that the first installed one in
    `PLATFORM_PREFERENCE`.

    Raises:
        PluginError: the platform is unknown, nothing is installed for it, the file in
            `CYXLA_PJRT_PLUGIN` cannot be a plugin, or an environment variable of JAX's asks for a
            client option in vain.
    """
    asked_by = "the argument platform"
    if platform is None and os.environ.get(PLATFORM_ENVIRONMENT_VARIABLE):
        platform = os.environ[PLATFORM_ENVIRONMENT_VARIABLE]
        asked_by = f"the environment variable {PLATFORM_ENVIRONMENT_VARIABLE}"
    path = os.environ.get(PLUGIN_ENVIRONMENT_VARIABLE)
    if path:
        check_platform(platform, asked_by)
        return plugin_from_path(Path(path), platform, source=PLUGIN_ENVIRONMENT_VARIABLE)
    candidates = tuple(_candidates())
    plugins = tuple(found for found in candidates if isinstance(found, Plugin))
    check_platform(platform, asked_by, plugins)
    for wanted in PLATFORM_PREFERENCE if platform is None else (platform,):
        for plugin in plugins:
            if plugin.platform == wanted:
                return _configured(plugin)
    raise PluginError(_recipe(platform, candidates))


def chosen_by_preference() -> bool:
    """Return whether nothing but `PLATFORM_PREFERENCE` decides what `find_plugin()` returns."""
    variables = (PLATFORM_ENVIRONMENT_VARIABLE, PLUGIN_ENVIRONMENT_VARIABLE)
    return not any(os.environ.get(variable) for variable in variables)


def plugin_from_path(path: Path, platform: str | None = None, source: str = "path") -> Plugin:
    """Return the plugin in a library, with the default options of `platform` ("cpu" if None).

    Raises:
        PluginError: the file cannot be a plugin of this process, the platform is unknown, the
            file is that of an installed package for another platform, or an environment variable
            of JAX's asks for a client option in vain.
    """
    check_plugin_file(path, source)
    check_platform(platform, "the argument platform")
    wanted = "cpu" if platform is None else platform
    library = installed_library_at(path)
    known = None
    if library is not None:
        known = known_options(library.distribution, library.version)
        if library.platform not in (None, wanted):
            raise PluginError(
                f"the PJRT plugin '{path}' ({source}) belongs to {library.source} and is for "
                f"platform {library.platform!r}, not {wanted!r}: ask for "
                f"platform={library.platform!r}, or set "
                f"{PLATFORM_ENVIRONMENT_VARIABLE}={library.platform}"
            )
    # The dynamic loader would search its own folders for a name without a slash.
    return _configured(_plugin(wanted, path.absolute(), source, known))


def check_plugin_file(path: Path, source: str) -> None:
    """Refuse a file that cannot be a plugin of this process, before anything loads it.

    Raises:
        PluginError: with the path, its source and the reason.
    """
    if (fault := plugin_file_fault(path)) is not None:
        raise PluginError(
            f"cannot load the PJRT plugin '{path}' ({source}): {fault}. "
            "Give the path of a plugin's shared library; `python -m cyxla` lists the installed ones"
        )


def _candidates() -> Iterator[Plugin | RejectedPlugin]:
    """Yield every candidate once, in the documented order; of one file only the first.

    The environment's options are not applied yet: a mistake in those for a platform that nobody
    uses is no error.
    """
    seen: list[Path] = []
    for found in (*_entry_point_plugins(), *_package_plugins(), *_named_plugins()):
        if found.path is not None:
            if any(same_file(found.path, path) for path in seen):
                continue
            seen.append(found.path)
        yield found


def _configured_candidates() -> Iterator[Plugin | RejectedPlugin]:
    """Yield the candidates with the environment's options; one that these rule out is rejected."""
    for found in _candidates():
        try:
            yield _configured(found) if isinstance(found, Plugin) else found
        except PluginError as error:
            yield RejectedPlugin(found.source, found.path, str(error))


def _configured(plugin: Plugin) -> Plugin:
    """Return the plugin with the client options that JAX's environment variables ask for.

    Raises:
        PluginError: a variable has no meaning, or two contradict each other.
    """
    options = environment_options(plugin.platform)
    return plugin._replace(create_options=MappingProxyType({**plugin.create_options, **options}))


def _plugin(
    platform: str, path: Path, source: str, known: Mapping[str, KnownOption] | None
) -> Plugin:
    preload = cuda_libraries(path) if platform == "cuda" else ()
    return Plugin(platform, path, source, default_options(platform, known), preload)


def _package_plugins() -> Iterator[Plugin | RejectedPlugin]:
    for library in _libraries():
        fault = plugin_file_fault(library.path)
        if fault is None and library.platform is None:
            fault = f"the name of its entry point in the group {library.group} tells no platform"
        if fault is not None or library.platform is None:
            yield RejectedPlugin(library.source, library.path, str(fault))
            continue
        known = known_options(library.distribution, library.version)
        yield _plugin(library.platform, library.path, library.source, known)


def _libraries() -> Iterator[InstalledLibrary]:
    """Yield the installed libraries, before libtpu the one that is to take its place."""
    named = tpu_library()
    for library in installed_libraries():
        if named is not None and (library.platform == "tpu" or library.group):
            yield InstalledLibrary(TPU_LIBRARY_VARIABLE, None, "tpu", named)
            named = None
        yield library
    if named is not None:
        yield InstalledLibrary(TPU_LIBRARY_VARIABLE, None, "tpu", named)


def _named_plugins() -> Iterator[Plugin | RejectedPlugin]:
    for platform, path, options in named_libraries():
        fault = options if isinstance(options, str) else None
        if fault is None and path is not None:
            fault = plugin_file_fault(path)
        if fault is not None or path is None or isinstance(options, str):
            yield RejectedPlugin(LIBRARIES_VARIABLE, path, str(fault))
            continue
        library = installed_library_at(path)
        known = None if library is None else known_options(library.distribution, library.version)
        plugin = _plugin(platform, path, LIBRARIES_VARIABLE, known)
        try:
            given = checked_options(
                options, plugin=f"the plugin {path}", platform=platform, known=known
            )
        except PluginError as error:
            yield RejectedPlugin(LIBRARIES_VARIABLE, path, str(error))
            continue
        yield plugin._replace(create_options=MappingProxyType({**plugin.create_options, **given}))


def _entry_point_plugins() -> Iterator[Plugin | RejectedPlugin]:
    for entry in entry_points(ENTRY_POINT_GROUP):
        source = entry_source(entry)
        try:
            yield _entry_point_plugin(entry.load(), source)
        # The module is someone else's: whatever it does, SystemExit included, is its own failure.
        except (Exception, SystemExit) as error:
            reason = f"{entry.value} failed: {type(error).__name__}: {error}"
            yield RejectedPlugin(source, None, reason)


def _entry_point_plugin(module: Any, source: str) -> Plugin | RejectedPlugin:
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
    return Plugin(platform, path, source, MappingProxyType(options))


def check_platform(
    platform: str | None, asked_by: str, plugins: tuple[Plugin, ...] | None = None
) -> None:
    """Raise PluginError for a platform that neither JAX nor an installed plugin has."""
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


def _recipe(platform: str | None, candidates: tuple[Plugin | RejectedPlugin, ...]) -> str:
    """Return the error for a platform without a plugin: what to do, and what was seen."""
    installed = {found.platform: None for found in candidates if isinstance(found, Plugin)}
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
