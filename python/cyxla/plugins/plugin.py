# SPDX-License-Identifier: Apache-2.0
"""The types that describe a plugin: found, rejected, or provided by a module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from cyxla.plugins.options import KnownOption, OptionValue
from cyxla.plugins.packages import InstalledLibrary

__all__ = [
    "ENTRY_POINT_GROUP",
    "PLATFORM_ENVIRONMENT_VARIABLE",
    "PLATFORM_PREFERENCE",
    "PLUGIN_ENVIRONMENT_VARIABLE",
    "Candidate",
    "Plugin",
    "PluginModule",
    "RejectedPlugin",
]

PLATFORM_PREFERENCE = ("cuda", "rocm", "tpu", "cpu")
"""The default platforms, the most preferred first."""

PLUGIN_ENVIRONMENT_VARIABLE = "CYXLA_PJRT_PLUGIN"
"""The environment variable with the path of a plugin to use instead of an installed one."""

PLATFORM_ENVIRONMENT_VARIABLE = "CYXLA_PLATFORM"
"""The environment variable with the default platform."""

ENTRY_POINT_GROUP = "cyxla.plugins"
"""The entry-point group whose entries each name a `PluginModule`."""


class Plugin(NamedTuple):
    """A PJRT plugin that can be loaded.

    Attributes:
        platform: JAX's name for the platform it compiles for.
        path: the shared library.
        source: where it was found: a distribution and its version, an environment variable, or
            "path".
        create_options: the options for its client.
        preload: libraries to load first, so that the dynamic loader finds them by soname.
    """

    platform: str
    path: Path
    source: str
    create_options: Mapping[str, OptionValue] = MappingProxyType({})
    preload: tuple[Path, ...] = ()


class Candidate(NamedTuple):
    """A plugin that discovery found, with what loading needs to know.

    Attributes:
        plugin: the plugin, with cyxla's and the environment's client options.
        library: the installed library that the plugin's file is, None for any other file.
        known: the client options that this version knows, None for an untested version.
    """

    plugin: Plugin
    library: InstalledLibrary | None = None
    known: Mapping[str, KnownOption] | None = None

    @property
    def described(self) -> str:
        """The plugin's path and source, for messages."""
        return f"the plugin {self.plugin.path} ({self.plugin.source})"


class RejectedPlugin(NamedTuple):
    """A candidate that cannot be loaded: its source, its path if known, and the reason."""

    source: str
    path: Path | None
    reason: str

    def __str__(self) -> str:
        where = "" if self.path is None else f", {self.path}"
        return f"{self.source}{where}: {self.reason}"


class PluginModule(Protocol):
    """The module (or object) that an entry point of the group `cyxla.plugins` names.

    Attributes:
        PLATFORM: the platform that the plugin compiles for, as `Plugin.platform`.
        CREATE_OPTIONS: the options for its client.
    """

    PLATFORM: str
    CREATE_OPTIONS: Mapping[str, OptionValue]

    def library_path(self) -> Path:
        """Return the path of the shared library."""
