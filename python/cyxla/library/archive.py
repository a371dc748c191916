# SPDX-License-Identifier: Apache-2.0
"""Writes static libraries: the ar format of GNU, with the index that linkers look symbols up in."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

_MAGIC: Final = b"!<arch>\n"


def write_archive(member: str, code: bytes, symbols: Sequence[str]) -> bytes:
    """Return an archive of one object file that defines these symbols.

    It has no time stamp and no owner, so equal objects give equal archives.
    """
    names = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    index_bytes = 4 + 4 * len(symbols) + len(names)
    start = len(_MAGIC) + len(_header("/", 0)) + index_bytes + index_bytes % 2
    # The index: how many symbols, the position of the member that defines each, their names.
    index = struct.pack(f">{1 + len(symbols)}I", len(symbols), *[start] * len(symbols)) + names
    return _MAGIC + _member("/", index) + _member(f"{member}/", code)


def _member(name: str, content: bytes) -> bytes:
    return _header(name, len(content)) + content + b"\n" * (len(content) % 2)


def _header(name: str, size_bytes: int) -> bytes:
    # Name, time, owner, group, mode, size; a name of at most 15 characters.
    fields = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size_bytes:<10}"
    return fields.encode("ascii") + b"`\n"
