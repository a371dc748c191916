# SPDX-License-Identifier: Apache-2.0
"""Writes advice for users: how to fix a plugin that fails to load, and which plugin is faster."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Sequence
from pathlib import Path

from cyxla.plugins.messages import has_no_gpu, has_no_tpu, missing_library
from cyxla.plugins.plugin import PLATFORM_ENVIRONMENT_VARIABLE

__all__ = ["faster_plugin", "load_advice", "other_platform_advice"]

_NVIDIA_DEVICES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
_ROCM_DEVICE = "/dev/kfd"
_FASTEST = "lammps-jax-pjrt-cpu"
_INLINE_OPTION = "asynchronous"


def other_platform_advice(platform: str, *, was_preferred: bool) -> str:
    """Return how to use the CPU after another platform failed to load; empty for "cpu".

    `was_preferred` is true if cyxla chose the platform by `PLATFORM_PREFERENCE`.
    """
    if platform == "cpu":
        return ""
    if was_preferred:
        return (
            f"{platform!r} was chosen as the most preferred platform that has a plugin. "
            f"If this machine has no such device, set {PLATFORM_ENVIRONMENT_VARIABLE}=cpu"
        )
    return (
        "To compute on the CPU instead, use platform='cpu' or set "
        f"{PLATFORM_ENVIRONMENT_VARIABLE}=cpu"
    )


def load_advice(platform: str, distribution: str, message: str) -> str:
    """Return what to install or set after a plugin failed to load, or an empty string.

    `distribution` is `Plugin.source`; `message` is the plugin's error.
    """
    if missing := missing_library(message):
        return _library_advice(platform, distribution, missing)
    if platform in ("cuda", "rocm") and has_no_gpu(message):
        return _gpu_advice(platform)
    if platform == "tpu" and has_no_tpu(message):
        return "This machine has no TPU that libtpu can use; another program may hold it"
    return ""


def _library_advice(platform: str, distribution: str, library: str) -> str:
    if platform == "rocm":
        major = re.search(r"rocm(\d+)", distribution)
        package = f"jax-rocm{major[1] if major else 7}-plugin"
        return (
            f"{library} belongs to ROCm: install ROCm under /opt/rocm, or "
            f"pip install '{package}[with-rocm]'"
        )
    if platform == "cuda":
        version = re.search(r"cuda(\d+)", distribution)
        package = f"jax-cuda{version[1] if version else 13}-plugin"
        return f"{library} is missing: pip install '{package}[with-cuda]'"
    return ""


def _gpu_advice(platform: str) -> str:
    variables: tuple[str, ...]
    if platform == "rocm":
        there = os.path.exists(_ROCM_DEVICE)
        variables = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "JAX_ROCM_VISIBLE_DEVICES")
        device, driver = _ROCM_DEVICE, "the amdgpu driver"
    else:
        there = any(Path(device).exists() for device in _NVIDIA_DEVICES)
        variables = ("CUDA_VISIBLE_DEVICES", "JAX_CUDA_VISIBLE_DEVICES")
        device, driver = _NVIDIA_DEVICES[0], "NVIDIA's driver (nvidia-smi lists its devices)"
    if not there:
        return f"{device} is missing: install {driver}, or give the container the device"
    values = [f"{name}={os.environ[name]}" for name in variables if name in os.environ]
    return f"Check {driver} and {', '.join(values) or variables[0]}"


def faster_plugin(name: str, options: Container[str], installed: Sequence[str]) -> str:
    """Return which CPU plugin is faster than the given one, and why; empty if none is.

    `name` is its `Plugin.source`, `options` the options that it knows, `installed` the sources of
    all installed plugins.
    """
    if _INLINE_OPTION in options:
        return ""
    found = next((source for source in installed if source.startswith(f"{_FASTEST} ")), None)
    where = (
        f"{found} is installed and faster: name its library in CYXLA_PJRT_PLUGIN"
        if found is not None
        else f"{_FASTEST} is faster: pip install {_FASTEST}, which requires jax<=0.11.2"
    )
    return (
        f"{where}. It has the option {_INLINE_OPTION!r} and computes on the caller's thread; "
        f"{name} does not, and passes every call that is not direct to a thread of its own"
    )
