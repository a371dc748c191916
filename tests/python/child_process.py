# SPDX-License-Identifier: Apache-2.0
"""Runs code in a Python process of its own: a process loads one plugin, once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping

# Set by whoever runs the tests, they would decide what a test is about.
_UNSET = (
    "CYXLA_CACHE_DIR",
    "CYXLA_DIRECT",
    "CYXLA_NUM_THREADS",
    "CYXLA_PJRT_PLUGIN",
    "CYXLA_PLATFORM",
    "NPROC",
    "PJRT_NPROC",
    "TF_CPP_MIN_LOG_LEVEL",
    "XLA_FLAGS",
)


def run_process(
    *arguments: str, env: Mapping[str, str] | None = None, seconds: float = 100
) -> subprocess.CompletedProcess[str]:
    """Run this Python with the arguments and return how it ended."""
    environment = {name: value for name, value in os.environ.items() if name not in _UNSET}
    environment |= env or {}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def run_code(code: str, env: Mapping[str, str] | None = None, seconds: float = 100) -> str:
    """Run the code, which must end well, and return what it printed."""
    ended = run_process("-c", textwrap.dedent(code), env=env, seconds=seconds)
    assert ended.returncode == 0, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout
