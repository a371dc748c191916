# SPDX-License-Identifier: Apache-2.0
"""Makes ELF files and installed packages for plugin discovery to read."""

from __future__ import annotations

import importlib
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

# JAX's variables that discovery reads; tests unset them.
_VARIABLES = (
    "CUDA_ROOT",
    "CYXLA_PJRT_PLUGIN",
    "CYXLA_PLATFORM",
    "JAX_CUDA_VISIBLE_DEVICES",
    "JAX_MOCK_GPU_TOPOLOGY",
    "JAX_PJRT_CLIENT_CREATE_OPTIONS",
    "JAX_ROCM_VISIBLE_DEVICES",
    "MOCK_NUM_GPU_PROCESSES",
    "PJRT_NAMES_AND_LIBRARY_PATHS",
    "TPU_LIBRARY_PATH",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT",
)

_ADDRESS = 0x10000  # the address in memory; the offset in the file is 0


def elf_file(
    *,
    bits: int = 64,
    byte_order: str = "<",
    machine: int | None = None,
    file_type: int = 3,
    strings: bytes = b"\0GetPjrtApi\0",
) -> bytes:
    """Return a 64-bit ELF file with these dynamic symbol strings, by default for this machine.

    With `bits=32` only the header's first bytes differ.
    """
    if machine is None:
        machine = own_machine()
    tags = ((5, _ADDRESS + 224), (10, len(strings)), (0, 0))
    dynamic = b"".join(struct.pack(byte_order + "qQ", *tag) for tag in tags)
    end = 176 + len(dynamic) + len(strings)
    segments = ((1, 0, end), (2, 176, len(dynamic)))
    table = b"".join(
        struct.pack(byte_order + "II6Q", type_, 4, offset, _ADDRESS + offset, 0, size, size, 8)
        for type_, offset, size in segments
    )
    head = struct.pack("4sBBB9x", b"\x7fELF", bits // 32, "<>".index(byte_order) + 1, 1)
    head += struct.pack(
        byte_order + "HHIQQQIHHHHHH", file_type, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    return head + table + dynamic + strings


def own_machine() -> int:
    """Return the ELF number of this Python's machine."""
    return int.from_bytes(Path("/proc/self/exe").read_bytes()[18:20], sys.byteorder)


def install(
    site: Path,
    distribution: str | None = None,
    version: str = "1.0",
    files: Mapping[str, bytes] | None = None,
    entry_points: str = "",
) -> None:
    """Write files into a folder of packages; with a name, pip's metadata too."""
    for name, content in (files or {}).items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(content)
    if distribution is not None:
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        if entry_points:
            (info / "entry_points.txt").write_text(entry_points)
    importlib.invalidate_caches()


def only_site(monkeypatch: pytest.MonkeyPatch, *sites: Path) -> None:
    """Hide all installed packages except those of the folders."""
    standard = [path for path in sys.path if "site-packages" not in path]
    monkeypatch.setattr(sys, "path", [*map(str, sites), *standard])
    for package in ("xla_plugins", "jax_plugins", "libtpu", "nvidia"):
        # Imported modules would still be found.
        monkeypatch.delitem(sys.modules, package, raising=False)
    importlib.invalidate_caches()
    for variable in _VARIABLES:
        monkeypatch.delenv(variable, raising=False)
