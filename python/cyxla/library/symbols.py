# SPDX-License-Identifier: Apache-2.0
"""Lists what an object file needs from elsewhere: ELF, COFF and WebAssembly."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

_SHT_SYMTAB: Final = 2
_COFF_EXTERNAL: Final = 2


def undefined_symbols(code: bytes) -> set[str]:
    """Return the names of the functions and variables that an object file does not define."""
    if code.startswith(b"\x7fELF"):
        return set(_of_elf(code))
    if code.startswith(b"\0asm"):
        return set(_of_wasm(code))
    return set(_of_coff(code))


def _of_elf(code: bytes) -> Iterator[str]:
    is_64 = code[4] == 2
    offset, size, count = (0x28, 64, 0x3C) if is_64 else (0x20, 40, 0x30)
    (start,) = struct.unpack_from("<Q" if is_64 else "<I", code, offset)
    (num_sections,) = struct.unpack_from("<H", code, count)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ" if is_64 else "<10I", code, start + i * size)
        for i in range(num_sections)
    ]
    for section in sections:
        if section[1] != _SHT_SYMTAB:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], section[9]):
            if is_64:
                name, _, _, index, _, _ = struct.unpack_from("<IBBHQQ", code, at)
            else:
                name, _, _, _, _, index = struct.unpack_from("<IIIBBH", code, at)
            if index == 0 and name:
                yield _text(code, names + name)


def _of_coff(code: bytes) -> Iterator[str]:
    table, count = struct.unpack_from("<II", code, 8)
    strings, skipped = table + 18 * count, 0
    for i in range(count):
        name, _, section, _, storage, auxiliary = struct.unpack_from(
            "<8sIhHBB", code, table + 18 * i
        )
        if skipped:
            skipped -= 1
            continue
        skipped = auxiliary
        if section == 0 and storage == _COFF_EXTERNAL:
            if name[:4] == bytes(4):
                yield _text(code, strings + struct.unpack("<I", name[4:])[0])
            else:
                yield name.rstrip(b"\0").decode()


def _of_wasm(code: bytes) -> Iterator[str]:
    at = 8
    while at < len(code):
        section = code[at]
        size, at = _number(code, at + 1)
        if section == 2:  # the imports
            yield from _wasm_imports(code, at)
        at += size


def _wasm_imports(code: bytes, at: int) -> Iterator[str]:
    count, at = _number(code, at)
    for _ in range(count):
        size, at = _number(code, at)
        size, at = _number(code, at + size)
        name, at = code[at : at + size].decode(), at + size
        kind, at = code[at], at + 1
        if kind == 0:  # a function; what follows is its type
            yield name
            _, at = _number(code, at)
        elif kind == 3:  # a global: its type and whether it changes
            at += 2
        else:  # a table has a type before its limits, a memory has limits alone
            flags, at = code[at + (kind == 1)], at + 1 + (kind == 1)
            for _ in range(2 if flags & 1 else 1):
                _, at = _number(code, at)


def _number(code: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = code[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(0, at)].decode()
