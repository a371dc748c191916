# SPDX-License-Identifier: Apache-2.0
"""The compile options of jaxlib for a plugin that was built from the XLA of the same version.

XLA's debug options decide how a program is compiled, down to the last bit of its results. A plugin
has defaults of its own, which differ from jaxlib's even where both are of one version. Those of
another version make programs slower or fail to compile, so nothing is given where versions differ.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cyxla import plugin_packages

__all__ = ["embedded_debug_options", "jaxlib_debug_options"]

# Distributions whose version is that of the jaxlib with the same XLA.
_VERSIONED_AS_JAXLIB: Final = ("lammps-jax-pjrt-cpu", "jax-cuda12-pjrt", "jax-cuda13-pjrt")
# Field numbers of xla/pjrt/proto/compile_options.proto.
_EXECUTABLE_BUILD_OPTIONS: Final = 3
_DEBUG_OPTIONS: Final = 3


@functools.cache
def jaxlib_debug_options(library_path: Path) -> bytes:
    """jaxlib's DebugOptions message, serialized, if the plugin is of its version; else empty."""
    library = plugin_packages.installed_library_at(library_path)
    if library is None or library.distribution not in _VERSIONED_AS_JAXLIB:
        return b""
    try:
        if library.version != importlib.metadata.version("jaxlib"):
            return b""
        from jaxlib import xla_client
    except ImportError:  # also where there is no jaxlib at all
        return b""
    # Not through the attributes of nested options: these may outlive what they are part of.
    return embedded_debug_options(bytes(xla_client.CompileOptions().SerializeAsString()))


def embedded_debug_options(compile_options: bytes) -> bytes:
    """The DebugOptions message in a CompileOptionsProto; empty if there is none.

    Raises:
        ValueError: these are no compile options.
    """
    message = compile_options
    for number in (_EXECUTABLE_BUILD_OPTIONS, _DEBUG_OPTIONS):
        message = dict(_fields(message)).get(number, b"")
    return message


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of the protobuf wire format that have a length; others are passed over."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        match tag & 7:
            case 0:
                _, position = _varint(message, position)
            case 1:
                position += 8
            case 2:
                length, position = _varint(message, position)
                yield tag >> 3, message[position : position + length]
                position += length
            case 5:
                position += 4
            case kind:
                raise ValueError(f"wire type {kind} in jaxlib's compile options")
    if position != len(message):
        raise ValueError("jaxlib's compile options end within a field")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for byte in message[position:]:
        position, value, shift = position + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, position
    raise ValueError("jaxlib's compile options end within a number")
