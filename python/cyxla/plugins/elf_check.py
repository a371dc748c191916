# SPDX-License-Identifier: Apache-2.0
"""Checks whether a file can be a PJRT plugin of this process, by its ELF headers.

The file is not loaded: loading runs its constructors, and a truncated file crashes the loader.
"""

from __future__ import annotations

import functools
import mmap
import os
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["plugin_file_fault"]

_ENTRY_FUNCTION = b"GetPjrtApi"
_ELF_MAGIC = b"\x7fELF"
_SHARED_OBJECT = 3
_FILE_TYPES = {1: "an object file", 2: "a program", 4: "a core dump"}
_SEGMENT_LOAD, _SEGMENT_DYNAMIC = 1, 2
_DYNAMIC_END, _DYNAMIC_STRING_TABLE, _DYNAMIC_STRING_TABLE_SIZE = 0, 5, 10
_MACHINES = {
    3: "x86",
    21: "PowerPC64",
    22: "S390",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}


class _Architecture(NamedTuple):
    bits: int
    byte_order: str  # as struct spells it
    machine: int

    def __str__(self) -> str:
        machine = _MACHINES.get(self.machine, f"machine {self.machine}")
        order = "little" if self.byte_order == "<" else "big"
        return f"{machine} ({self.bits} bits, {order}-endian)"


class _Segment(NamedTuple):
    type: int
    offset: int
    address: int
    size_bytes: int


class _BrokenElf(Exception):
    """The ELF headers are truncated or invalid."""


def plugin_file_fault(path: Path) -> str | None:
    """Return why this process cannot load the file as a PJRT plugin, or None if it can.

    The reason follows a colon in messages: "the file does not exist". On systems without ELF, only
    the file's kind and permissions are checked.
    """
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return "it is a folder, not a library"
        if not stat.S_ISREG(status.st_mode):
            return "it is not a regular file"
        own = _own_architecture()
        with open(path, "rb") as file:
            if own is None:
                return None
            if status.st_size == 0:
                return "it is empty"
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _elf_fault(content, own)
    except FileNotFoundError:
        return "the file does not exist"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except ValueError:
        return "a path cannot have a zero byte in it"


def _elf_fault(content: mmap.mmap, own: _Architecture) -> str | None:
    if content[:4] != _ELF_MAGIC:
        return f"it is not an ELF library (it starts with {content[:4]!r})"
    try:
        architecture, file_type = _architecture(content[:20])
        if architecture != own:
            return f"it is built for {architecture}, this process is {own}"
        if file_type != _SHARED_OBJECT:
            kind = _FILE_TYPES.get(file_type, f"an ELF file of type {file_type}")
            return f"it is {kind}, not a shared library"
        segments = list(_segments(content, own))
        end = max((segment.offset + segment.size_bytes for segment in segments), default=0)
        if end > len(content):
            return f"it is cut off: it has {len(content)} bytes, its segments end at byte {end}"
        if b"\0" + _ENTRY_FUNCTION + b"\0" not in _dynamic_strings(content, own, segments):
            return f"it has no function {_ENTRY_FUNCTION.decode()}, so it is not a PJRT plugin"
    except (_BrokenElf, struct.error, OverflowError):
        return "its ELF headers are broken"
    return None


def _architecture(head: bytes) -> tuple[_Architecture, int]:
    """Return the architecture and the file type from an ELF file's first 20 bytes."""
    if len(head) < 20 or head[4] not in (1, 2) or head[5] not in (1, 2):
        raise _BrokenElf
    byte_order = "<" if head[5] == 1 else ">"
    file_type, machine = struct.unpack_from(byte_order + "HH", head, 16)
    return _Architecture(32 * head[4], byte_order, machine), file_type


def _segments(content: mmap.mmap, own: _Architecture) -> Iterator[_Segment]:
    """Yield the program headers."""
    if own.bits == 64:
        table_at, where_size_and_count, layout = (32, "Q"), 54, "II4Q"
    else:
        table_at, where_size_and_count, layout = (28, "I"), 42, "5I"
    (table,) = struct.unpack_from(own.byte_order + table_at[1], content, table_at[0])
    entry_size, count = struct.unpack_from(own.byte_order + "HH", content, where_size_and_count)
    for index in range(count):
        fields = struct.unpack_from(own.byte_order + layout, content, table + index * entry_size)
        if own.bits == 64:
            type_, _, offset, address, _, size_bytes = fields
        else:
            type_, offset, address, _, size_bytes = fields
        yield _Segment(type_, offset, address, size_bytes)


def _dynamic_strings(content: mmap.mmap, own: _Architecture, segments: list[_Segment]) -> bytes:
    """Return the string table of the dynamic symbols, empty if there is none."""
    entry = struct.Struct(own.byte_order + ("qQ" if own.bits == 64 else "iI"))
    values: dict[int, int] = {}
    for dynamic in (segment for segment in segments if segment.type == _SEGMENT_DYNAMIC):
        table = content[dynamic.offset : dynamic.offset + dynamic.size_bytes]
        for tag, value in entry.iter_unpack(table[: len(table) // entry.size * entry.size]):
            if tag == _DYNAMIC_END:
                break
            values[tag] = value
    address = values.get(_DYNAMIC_STRING_TABLE, 0)
    size_bytes = values.get(_DYNAMIC_STRING_TABLE_SIZE, 0)
    for segment in segments:
        start = address - segment.address
        if segment.type == _SEGMENT_LOAD and 0 <= start < segment.size_bytes:
            return content[segment.offset + start : segment.offset + start + size_bytes]
    return b""


@functools.cache
def _own_architecture() -> _Architecture | None:
    """Return the architecture of this process's program, None on systems without ELF.

    `platform.machine()` does not answer this: a 32-bit Python runs on a 64-bit kernel.
    """
    for program in ("/proc/self/exe", sys.executable):
        try:
            with open(program, "rb") as file:
                head = file.read(20)
            if head.startswith(_ELF_MAGIC):
                return _architecture(head)[0]
        except (OSError, TypeError, _BrokenElf):
            continue
    return None
