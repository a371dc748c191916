# SPDX-License-Identifier: Apache-2.0
"""Provides jaxlib's compile options for plugins that were built from the same version of XLA.

XLA's debug options affect results down to the last bit, and a plugin's defaults differ from
jaxlib's even for the same version. The options of another version make programs slower or fail to
compile, so they are passed only if the versions match.
"""

from __future__ import annotations

import functools
import importlib.metadata
from typing import Final

from cyxla.plugins.packages import InstalledLibrary

__all__ = ["jaxlib_compile_options"]

# Distributions with the version number of the jaxlib that has the same XLA.
_VERSIONED_AS_JAXLIB: Final = ("lammps-jax-pjrt-cpu", "jax-cuda12-pjrt", "jax-cuda13-pjrt")


@functools.cache
def jaxlib_compile_options(library: InstalledLibrary | None) -> bytes:
    """Return jaxlib's serialized CompileOptionsProto, empty if the plugin's version differs."""
    if library is None or library.distribution not in _VERSIONED_AS_JAXLIB:
        return b""
    try:
        if library.version != importlib.metadata.version("jaxlib"):
            return b""
        from jaxlib import xla_client
    except ImportError:  # includes PackageNotFoundError
        return b""
    return bytes(xla_client.CompileOptions().SerializeAsString())
