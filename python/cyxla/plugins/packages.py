# SPDX-License-Identifier: Apache-2.0
"""Finds the PJRT plugins that other projects' packages install, by their paths.

The packages are not imported: that takes time, and JAX's would register a backend with JAX.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "PACKAGES",
    "PLUGIN_GROUPS",
    "InstalledLibrary",
    "PluginPackage",
    "entry_points",
    "entry_source",
    "installed_libraries",
    "installed_library_at",
    "same_file",
]

PLUGIN_GROUPS = {"xla_plugins": "*.so", "jax_plugins": "*plugin*.so"}
"""Entry-point groups, and the file name pattern of the library in the package an entry names."""


class PluginPackage(NamedTuple):
    """A distribution known to have a plugin, and the library's path in its import package."""

    distribution: str
    platform: str
    package: str
    library: str

    def libraries(self) -> Iterator[Path]:
        """Yield the libraries that exist, or the expected path if the library is missing."""
        found = False
        for folder in _package_folders(self.package):
            if (folder / self.library).exists():
                found = True
                yield folder / self.library
        if not found and (expected := self._recorded_library()) is not None:
            yield expected

    def version_of(self, library: Path) -> str | None:
        """Return the distribution's version if it installed this library, else None."""
        recorded = self._recorded_library()
        if recorded is None or not (recorded == library or same_file(recorded, library)):
            return None
        return _name_and_version(importlib.metadata.distribution(self.distribution))[1]

    def _recorded_library(self) -> Path | None:
        try:
            distribution = importlib.metadata.distribution(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return None
        return Path(str(distribution.locate_file(f"{self.package}/{self.library}")))


# Newest first within a platform, by the PJRT API version of the latest release.
PACKAGES = (
    PluginPackage("lammps-jax-pjrt-cpu", "cpu", "lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so"),
    PluginPackage("fastatomstruct-xla-cpu", "cpu", "fastatomstruct_xla_cpu", "libpjrt_cpu.so"),
    PluginPackage("xla-cpu-pjrt", "cpu", "xla_plugins", "xla_cpu_pjrt/xla_cpu_pjrt.so"),
    PluginPackage("jax-cuda13-pjrt", "cuda", "jax_plugins", "xla_cuda13/xla_cuda_plugin.so"),
    PluginPackage("jax-cuda12-pjrt", "cuda", "jax_plugins", "xla_cuda12/xla_cuda_plugin.so"),
    PluginPackage("jax-rocm7-pjrt", "rocm", "jax_plugins", "xla_rocm7/xla_rocm_plugin.so"),
    PluginPackage("libtpu", "tpu", "libtpu", "libtpu.so"),
)


class InstalledLibrary(NamedTuple):
    """A library of an installed package; its platform is None if unknown.

    The path may not exist, so that a package without its library is reported.
    """

    distribution: str
    version: str | None
    platform: str | None
    path: Path
    group: str = ""  # the entry-point group of the package, empty for a known package

    @property
    def source(self) -> str:
        """The distribution and, if known, its version."""
        return self.distribution if self.version is None else f"{self.distribution} {self.version}"


def installed_libraries() -> Iterator[InstalledLibrary]:
    """Yield the libraries of the known packages, then those of the entry-point groups."""
    for package in PACKAGES:
        for path in package.libraries():
            yield InstalledLibrary(
                package.distribution, package.version_of(path), package.platform, path
            )
    for group, pattern in PLUGIN_GROUPS.items():
        yield from _group_libraries(group, pattern)


def installed_library_at(path: Path) -> InstalledLibrary | None:
    """Return the installed library that is the same file as `path`, None if there is none."""
    for library in installed_libraries():
        if same_file(library.path, path):
            return library
    return None


def same_file(first: Path, second: Path) -> bool:
    """Return whether both paths name one existing file."""
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        return False


def entry_points(group: str) -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of a group, by name."""
    entries = importlib.metadata.entry_points(group=group)
    return sorted(entries, key=lambda entry: (entry.name, entry.value))


def entry_source(entry: importlib.metadata.EntryPoint) -> str:
    """Return an entry point's distribution, version and name, for messages."""
    name, version = _name_and_version(entry.dist)
    distribution = " ".join(part for part in (name, version) if part)
    return ", ".join(part for part in (distribution, f"entry point {entry.name}") if part)


def _group_libraries(group: str, pattern: str) -> Iterator[InstalledLibrary]:
    for entry in entry_points(group):
        top, *below = entry.value.partition(":")[0].strip().split(".")
        name, version = _name_and_version(entry.dist)
        for root in _package_folders(top):
            for path in sorted(root.joinpath(*below).glob(pattern)):
                distribution = entry.value if name is None else name
                platform = _platform_in(entry.name)
                yield InstalledLibrary(distribution, version, platform, path, group)


def _platform_in(name: str) -> str | None:
    """Return the platform in an entry point's name such as xla_cpu_pjrt, None if ambiguous."""
    platforms = {package.platform for package in PACKAGES if package.platform in name.lower()}
    return platforms.pop() if len(platforms) == 1 else None


def _package_folders(package: str) -> list[Path]:
    """Return the folders of a top-level import package, without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        # A module without a spec, or a third-party finder that fails.
        return []
    locations = None if spec is None else spec.submodule_search_locations
    return [] if locations is None else [Path(location) for location in locations]


def _name_and_version(
    distribution: importlib.metadata.Distribution | None,
) -> tuple[str | None, str | None]:
    """Return a distribution's name and version, None for what its metadata lacks."""
    if distribution is None:
        return None, None
    try:
        fields = distribution.metadata.json
    except Exception:  # its type differs between versions of Python
        return None, None
    return _text(fields.get("name")), _text(fields.get("version"))


def _text(field: object) -> str | None:
    return field if isinstance(field, str) and field else None
