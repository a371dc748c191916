# SPDX-License-Identifier: Apache-2.0
"""Where installed packages of other projects keep their PJRT plugins.

The packages are not imported: importing JAX's plugin packages registers a backend with JAX, and
importing any package costs time. Their libraries are found by their place on disk.
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
"""Entry-point groups; each entry names an import package with a library of such a name in it."""


class PluginPackage(NamedTuple):
    """A distribution known to have a plugin, and the library's place in its import package."""

    distribution: str
    platform: str
    package: str
    library: str

    def libraries(self) -> Iterator[Path]:
        """Yield the libraries that exist; the expected path if only the distribution does."""
        found = False
        for folder in _package_folders(self.package):
            if (folder / self.library).exists():
                found = True
                yield folder / self.library
        if not found and (expected := self._recorded_library()) is not None:
            yield expected

    def version_of(self, library: Path) -> str | None:
        """Return the distribution's version if the library is the one that it installed."""
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


# Newest first within a platform, by the PJRT API of their latest release.
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
    """A library of an installed package; its platform is None if nothing tells it.

    The path need not exist: an installation that lost its library is worth reporting.
    """

    distribution: str
    version: str | None
    platform: str | None
    path: Path
    group: str = ""  # the entry-point group that it was found by

    @property
    def source(self) -> str:
        """The distribution and, if known, its version."""
        return self.distribution if self.version is None else f"{self.distribution} {self.version}"


def installed_libraries() -> Iterator[InstalledLibrary]:
    """Yield the libraries of the known packages in their order, then those of the plugin groups."""
    for package in PACKAGES:
        for path in package.libraries():
            yield InstalledLibrary(
                package.distribution, package.version_of(path), package.platform, path
            )
    for group, pattern in PLUGIN_GROUPS.items():
        yield from _group_libraries(group, pattern)


def installed_library_at(path: Path) -> InstalledLibrary | None:
    """Return the known package's library that is this very file, whatever its path is called."""
    for library in installed_libraries():
        if same_file(library.path, path):
            return library
    return None


def same_file(first: Path, second: Path) -> bool:
    """Return whether both paths lead to one existing file."""
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        return False


def entry_points(group: str) -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of a group, by name."""
    entries = importlib.metadata.entry_points(group=group)
    return sorted(entries, key=lambda entry: (entry.name, entry.value))


def entry_source(entry: importlib.metadata.EntryPoint) -> str:
    """Return the distribution that an entry point is from, with its version, and its name."""
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
    """Return the platform that an entry's name such as xla_cpu_pjrt speaks of."""
    platforms = {package.platform for package in PACKAGES if package.platform in name.lower()}
    return platforms.pop() if len(platforms) == 1 else None


def _package_folders(package: str) -> list[Path]:
    """Return the folders of a top-level import package, found without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        # A module without a spec, or a finder of someone else's that does not do its work.
        return []
    locations = None if spec is None else spec.submodule_search_locations
    return [] if locations is None else [Path(location) for location in locations]


def _name_and_version(
    distribution: importlib.metadata.Distribution | None,
) -> tuple[str | None, str | None]:
    """Return what the metadata say; an installation that lost its metadata file says nothing."""
    if distribution is None:
        return None, None
    try:
        fields = distribution.metadata.json
    except Exception:  # which one differs between versions of Python
        return None, None
    return _text(fields.get("name")), _text(fields.get("version"))


def _text(field: object) -> str | None:
    return field if isinstance(field, str) and field else None
