# SPDX-License-Identifier: Apache-2.0
"""Describes where a result comes from: machine, versions, plugin, revision."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import cyxla
import jax

from native_build import C_COMPILER, OPTIMIZATION, ROOT

_PACKAGES = (
    "cyxla", "jax", "jaxlib", "numpy", "cython", "casadi", "numba", "onnxruntime", "pypjrt",
    "lammps-jax-pjrt-cpu", "fastatomstruct-xla-cpu", "xla-cpu-pjrt",
)  # fmt: skip


def describe_run() -> dict[str, Any]:
    """Describe this run without its figures or any paths. Loads the plugin."""
    info = cyxla.runtime_info()
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "compiler": f"{_first_line([C_COMPILER, '--version'])}, {' '.join(OPTIMIZATION)}",
        "versions": {name: _version(name) for name in _PACKAGES},
        "plugin": {
            "source": info.plugin.source,
            "api_version": list(info.api_version),
            "platform": info.platform,
            "stablehlo_version": info.stablehlo_version,
            "create_options": dict(info.plugin.create_options),
            "threads": info.threads,
        },
        "jax_asynchronous": jax.config.read("jax_cpu_enable_async_dispatch"),
        "git": {
            "revision": _first_line(["git", "rev-parse", "HEAD"]),
            "changed": bool(_first_line(["git", "status", "--porcelain", "--untracked-files=no"])),
        },
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def _first_line(command: list[str]) -> str:
    try:
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ended.stdout.partition("\n")[0]
