# SPDX-License-Identifier: Apache-2.0
"""Runs code in a Python process of its own, because a process loads only one plugin."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

# Variables that would change what a test is about.
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
    """Run this Python with the arguments and return the completed process."""
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
    """Run code that can import `support`, and return what it printed; it must end with status 0.

    A PYTHONPATH of `env` comes first.
    """
    env = env or {}
    paths = [env.get("PYTHONPATH"), str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    search = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    ended = run_process("-c", textwrap.dedent(code), env={**env, **search}, seconds=seconds)
    assert ended.returncode == 0, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout
