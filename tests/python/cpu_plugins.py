# SPDX-License-Identifier: Apache-2.0
"""The CPU plugins for tests that depend on the plugin; the first is the default."""

from __future__ import annotations

import cyxla
from child_process import run_code

CPU_LIBRARIES = ("pjrt_c_api_cpu_plugin.so", "libpjrt_cpu.so", "xla_cpu_pjrt.so")


def variables(library: str) -> dict[str, str]:
    """The environment variables that select this plugin."""
    (path,) = (found.path for found in cyxla.available_plugins() if found.path.name == library)
    return {cyxla.PLUGIN_ENVIRONMENT_VARIABLE: str(path)}


def run_with_plugin(library: str, code: str) -> str:
    """Run the code in a process with this plugin, and return what it printed."""
    return run_code(code, env=variables(library))
