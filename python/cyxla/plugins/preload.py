# SPDX-License-Identifier: Apache-2.0
"""Opens NVIDIA's libraries for CUDA plugins, from the packages where pip puts them.

A CUDA plugin opens them by soname on first use. It finds them only if all packages share a folder,
and the one for CUDA 12 may find libraries of CUDA 13. So cyxla opens those of the plugin's CUDA
version first, in JAX's order, without importing the packages.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

from cyxla.errors import PluginError

__all__ = ["cuda_data_folder", "cuda_libraries", "cuda_version", "open_libraries"]

# Folders of the namespace package `nvidia` and the sonames in them, in the order in which JAX opens
# them. A soname has a version of its own, not CUDA's.
_LIBRARIES: dict[int, tuple[tuple[str, str], ...]] = {
    12: (
        ("cuda_runtime", "libcudart.so.12"),
        ("cuda_nvrtc", "libnvrtc.so.12"),
        ("cublas", "libcublas.so.12"),
        ("cublas", "libcublasLt.so.12"),
        ("nccl", "libnccl.so.2"),
        ("cuda_cupti", "libcupti.so.12"),
        ("cusparse", "libcusparse.so.12"),
        ("cusolver", "libcusolver.so.11"),
        ("cufft", "libcufft.so.11"),
        ("nvshmem", "libnvshmem_host.so.3"),
        ("cudnn", "libcudnn.so.9"),
    ),
    13: (
        ("cu13", "libcudart.so.13"),
        ("cu13", "libnvrtc.so.13"),
        ("cu13", "libcublas.so.13"),
        ("cu13", "libcublasLt.so.13"),
        ("nccl", "libnccl.so.2"),
        ("cu13", "libcupti.so.13"),
        ("cu13", "libcusparse.so.12"),
        ("cu13", "libcusolver.so.12"),
        ("cu13", "libcufft.so.12"),
        ("nvshmem", "libnvshmem_host.so.3"),
        ("cudnn", "libcudnn.so.9"),
    ),
}

# The folders with ptxas and libdevice.
_DATA_FOLDERS = {12: "cuda_nvcc", 13: "cu13"}

_opened: list[ctypes.CDLL] = []


def cuda_version(library: Path) -> int | None:
    """Return the CUDA version that a plugin was built for, by the name of its folder."""
    found = re.search(r"cuda(\d+)", library.parent.name)
    return None if found is None else int(found[1])


def cuda_libraries(library: Path) -> tuple[Path, ...]:
    """Return the installed libraries to open before a CUDA plugin; empty for other plugins."""
    version = cuda_version(library)
    roots = list(_nvidia_folders()) if version in _LIBRARIES else []
    found = []
    for folder, soname in _LIBRARIES.get(version or 0, ()):
        paths = (root / folder / "lib" / soname for root in roots)
        found.extend([path for path in paths if path.exists()][:1])
    return tuple(found)


def open_libraries(plugin: Path, source: str, libraries: tuple[Path, ...]) -> list[str]:
    """Open a plugin's libraries, so that the dynamic loader finds them by soname.

    Returns a line for each of NVIDIA's that cannot be opened. These do not raise: programs may not
    need them, and if the driver is missing, the plugin's own error is clearer.

    Raises:
        PluginError: another library cannot be opened.
    """
    lost = []
    found = cuda_libraries(plugin) if libraries else ()
    for path in libraries:
        try:
            _opened.append(ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL))
        except OSError as error:
            if path in found:
                lost.append(f"Not opened before it: {path}: {error}")
                continue
            raise PluginError(
                f"cannot load {path}, which the plugin {plugin} ({source}) needs: {error}"
            ) from error
    return lost


def cuda_data_folder(library: Path) -> Path | None:
    """Return the folder with `bin/ptxas` and `nvvm/libdevice` for a CUDA plugin, None if missing.

    As in JAX, the environment variable `CUDA_ROOT` comes before the package for the plugin's CUDA
    version.
    """
    version = cuda_version(library)
    if version is None:
        return None
    if root := os.environ.get("CUDA_ROOT"):
        return Path(root)
    for root_folder in _nvidia_folders():
        folder = root_folder / _DATA_FOLDERS.get(version, f"cu{version}")
        if (folder / "bin" / "ptxas").exists() or (folder / "nvvm" / "libdevice").exists():
            return folder
    return None


def _nvidia_folders() -> Iterator[Path]:
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError, AttributeError):
        return
    for location in (None if spec is None else spec.submodule_search_locations) or ():
        yield Path(location)
