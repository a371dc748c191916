# SPDX-License-Identifier: Apache-2.0
"""A plugin, as users name it and as discovery hands it on."""

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
"""The platforms from the most to the least preferred, where nobody asks for one."""

PLUGIN_ENVIRONMENT_VARIABLE = "CYXLA_PJRT_PLUGIN"
"""Names the environment variable with the path of the plugin to use instead of an installed one."""

PLATFORM_ENVIRONMENT_VARIABLE = "CYXLA_PLATFORM"
"""Names the environment variable with the platform to use where none is asked for."""

ENTRY_POINT_GROUP = "cyxla.plugins"
"""The entry-point group whose entries each name a `PluginModule`."""


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


class Candidate(NamedTuple):
    """A plugin with all that discovery knows of it; what loading takes.

    Attributes:
        plugin: the plugin, with cyxla's and the environment's client options.
        library: the installed package that the plugin's file belongs to, None for another file.
        known: every client option that this version knows, None for an untested version.
    """

    plugin: Plugin
    library: InstalledLibrary | None = None
    known: Mapping[str, KnownOption] | None = None

    @property
    def described(self) -> str:
        """The plugin's path and source, for messages."""
        return f"the plugin {self.plugin.path} ({self.plugin.source})"


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
