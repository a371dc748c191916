# SPDX-License-Identifier: Apache-2.0
"""Finds PJRT plugins and prepares a process for one, without compiled code."""

from cyxla.plugins.discovery import available_plugins, find_plugin, rejected_plugins
from cyxla.plugins.options import OptionValue
from cyxla.plugins.plugin import (
    PLATFORM_ENVIRONMENT_VARIABLE,
    PLATFORM_PREFERENCE,
    PLUGIN_ENVIRONMENT_VARIABLE,
    Plugin,
    PluginModule,
    RejectedPlugin,
)

__all__ = [
    "PLATFORM_ENVIRONMENT_VARIABLE",
    "PLATFORM_PREFERENCE",
    "PLUGIN_ENVIRONMENT_VARIABLE",
    "OptionValue",
    "Plugin",
    "PluginModule",
    "RejectedPlugin",
    "available_plugins",
    "find_plugin",
    "rejected_plugins",
]
