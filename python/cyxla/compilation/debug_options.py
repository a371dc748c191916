# SPDX-License-Identifier: Apache-2.0
"""The compile options of jaxlib for a plugin that was built from the XLA of the same version.

XLA's debug options decide how a program is compiled, down to the last bit of its results. A plugin
has defaults of its own, which differ from jaxlib's even where both are of one version. Those of
another version make programs slower or fail to compile, so nothing is given where versions differ.
"""

from __future__ import annotations

import functools
import importlib.metadata
from typing import Final

from cyxla.plugins.packages import InstalledLibrary

__all__ = ["jaxlib_compile_options"]

# Distributions whose version is that of the jaxlib with the same XLA.
_VERSIONED_AS_JAXLIB: Final = ("lammps-jax-pjrt-cpu", "jax-cuda12-pjrt", "jax-cuda13-pjrt")


@functools.cache
def jaxlib_compile_options(library: InstalledLibrary | None) -> bytes:
    """jaxlib's CompileOptionsProto, serialized, if the plugin is of its version; else empty."""
    if library is None or library.distribution not in _VERSIONED_AS_JAXLIB:
        return b""
    try:
        if library.version != importlib.metadata.version("jaxlib"):
            return b""
        from jaxlib import xla_client
    except ImportError:  # also without any jaxlib
        return b""
    return bytes(xla_client.CompileOptions().SerializeAsString())
