# SPDX-License-Identifier: Apache-2.0
"""What to do when a plugin cannot be loaded, and which other one would be faster."""

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
    """Return how to use the CPU in place of a platform that cannot be loaded; empty for "cpu".

    `was_preferred` tells that nobody asked for the platform.
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
    """Return what to install or set after a plugin's failure to load, or an empty string.

    `distribution` is the plugin's, as in `Plugin.source`; `message` is the plugin's own.
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
        return f"There is no {device}: install {driver}, or give the container the device"
    values = [f"{name}={os.environ[name]}" for name in variables if name in os.environ]
    return f"Check {driver} and {', '.join(values) or variables[0]}"


def faster_plugin(name: str, options: Container[str], installed: Sequence[str]) -> str:
    """Return which CPU plugin would be faster than one, and why; an empty string for none.

    `name` is its `Plugin.source`, `options` are the names of those that it knows, `installed` the
    sources of all installed plugins.
    """
    if _INLINE_OPTION in options:
        return ""
    found = next((source for source in installed if source.startswith(f"{_FASTEST} ")), None)
    where = (
        f"{found} is installed and faster: name its library in CYXLA_PJRT_PLUGIN"
        if found is not None
        else f"{_FASTEST} is faster: pip install {_FASTEST}, which asks for jax<=0.11.2"
    )
    return (
        f"{where}. It has the option {_INLINE_OPTION!r}, and computes on the caller's thread; "
        f"{name} has not, and hands every call that is not direct to a thread of its own"
    )
