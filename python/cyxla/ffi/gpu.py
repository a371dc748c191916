# SPDX-License-Identifier: Apache-2.0
"""Finds the FFI handlers for GPUs in JAX's plugin packages.

As jaxlib does, this reads them from the package's extension modules, but without importing jax,
which would look for devices.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

__all__ = ["PACKAGES", "GpuTarget", "gpu_targets"]

PACKAGES = {
    "cuda": ("jax_cuda13_plugin", "jax_cuda12_plugin"),
    "rocm": ("jax_rocm10_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin"),
}
"""The import packages with a platform's handlers, in jaxlib's order."""

_MODULES = ("_solver", "_hybrid", "_linalg", "_sparse", "_prng", "_rnn", "_triton")
_LEGACY_TRITON = "triton_kernel_call"
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


class GpuTarget(NamedTuple):
    """A handler: its target's name, a capsule or a dict of stages, and its API version.

    Version 1 is XLA's typed FFI, 0 the older custom-call API.
    """

    name: str
    target: object
    api_version: int


def gpu_targets(platform: str, library: Path | None = None) -> Iterator[GpuTarget]:
    """Yield the handlers for "cuda" or "rocm" in the package that belongs to a plugin.

    With `library` this is the package for that plugin's CUDA or ROCm version, otherwise the first
    installed one. A CUDA package whose version differs from jaxlib's is skipped with a
    RuntimeWarning, because JAX lowers to the handlers of its own version. So is a module that
    cannot be imported because one of the vendor's libraries is missing.

    Other platforms have no handlers: XLA for TPUs has them built in.
    """
    package = _package(platform, library)
    if package is None or not _is_of_jaxlib(platform, package):
        return
    names = set[str]()
    for module_name in _MODULES:
        module = _module(package, module_name)
        for target in () if module is None else _module_targets(module, module_name):
            if target.name not in names:
                names.add(target.name)
                yield target


def _module_targets(module: ModuleType, name: str) -> Iterator[GpuTarget]:
    if name == "_hybrid":
        # Sets the pointers to SciPy's LAPACK, which these handlers call on the host.
        module.initialize()
    if name == "_triton":
        yield GpuTarget(_LEGACY_TRITON, module.get_custom_call(), 0)
    for target, handler in module.registrations().items():
        yield GpuTarget(target, handler, 1)


def _package(platform: str, library: Path | None) -> str | None:
    installed = [name for name in PACKAGES.get(platform, ()) if importlib.util.find_spec(name)]
    version = re.search(r"xla_(\w+\d+)$", library.parent.name) if library is not None else None
    if version is not None:
        installed = [name for name in installed if name == f"jax_{version[1]}_plugin"]
    return installed[0] if installed else None


def _module(package: str, name: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"{package}.{name}")
    except ImportError as error:
        warnings.warn(
            f"the GPU kernels in {package}.{name} cannot be loaded: {error}. Programs that need "
            "them will not compile",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _is_of_jaxlib(platform: str, package: str) -> bool:
    if platform != "cuda":
        return True  # the ROCm package has its own releases; jaxlib does not compare it either
    distribution = package.replace("_", "-")
    try:
        own, jaxlib = metadata.version(distribution), metadata.version("jaxlib")
    except metadata.PackageNotFoundError:
        return True
    if _numbers(own) == _numbers(jaxlib):
        return True
    warnings.warn(
        f"{distribution} {own} has GPU kernels for another version of JAX than jaxlib {jaxlib}, "
        f"and cyxla uses none of them: pip install '{distribution}=={jaxlib}', or jax and jaxlib "
        f"{own}",
        RuntimeWarning,
        stacklevel=3,
    )
    return False


def _numbers(version: str) -> str:
    found = _NUMBERS.match(version)
    return version if found is None else found[0]
