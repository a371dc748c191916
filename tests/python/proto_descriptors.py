# SPDX-License-Identifier: Apache-2.0
"""The fields of protobuf messages, out of the descriptors that a plugin's file carries.

C++ programs embed the FileDescriptorProto of each .proto file that they use, as plain bytes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# FileDescriptorProto, DescriptorProto, FieldDescriptorProto of google/protobuf/descriptor.proto.
_FILE_MESSAGE, _FILE_SYNTAX, _LAST_FILE_FIELD = 4, 12, 14
_MESSAGE_NAME, _MESSAGE_FIELD, _NESTED_MESSAGE = 1, 2, 3
_FIELD_NAME, _FIELD_NUMBER, _FIELD_LABEL, _FIELD_TYPE = 1, 3, 4, 5
_REPEATED = 3
_DOUBLE, _FLOAT, _BOOL, _STRING, _MESSAGE, _BYTES = 1, 2, 8, 9, 11, 12


class Field(NamedTuple):
    """A field as the tables of src/direct/read describe it."""

    name: str
    kind: str


Messages = dict[str, dict[int, Field]]
"""The fields of each message by number, by the message's name, such as 'Outer.Inner'."""


def messages_of(library: Path, proto: str) -> Messages:
    """The messages of a .proto file in the descriptors of a shared library; {} if it has none."""
    start = bytes((0x0A, len(proto))) + proto.encode()
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        position = data.find(start)
        messages: Messages = {}
        # The descriptor's length is not stored: it ends where no field of it follows.
        for number, value in _fields(data, position) if position >= 0 else ():
            if number == _FILE_MESSAGE and isinstance(value, bytes):
                _add_message(messages, value, "")
            if number == _FILE_SYNTAX or number > _LAST_FILE_FIELD:
                break
    return messages


def _add_message(messages: Messages, descriptor: bytes, prefix: str) -> None:
    parts = list(_fields(descriptor, 0))
    name = prefix + _text(dict(parts)[_MESSAGE_NAME])
    messages[name] = {}
    for number, value in parts:
        if number == _MESSAGE_FIELD:
            field = dict(_fields(_bytes(value), 0))
            messages[name][int(field[_FIELD_NUMBER])] = Field(
                _text(field[_FIELD_NAME]), _kind(field)
            )
    for number, value in parts:
        if number == _NESTED_MESSAGE:
            _add_message(messages, _bytes(value), f"{name}.")


def _kind(field: dict[int, bytes | int]) -> str:
    kind, is_repeated = field[_FIELD_TYPE], field[_FIELD_LABEL] == _REPEATED
    if kind in (_STRING, _MESSAGE, _BYTES):
        return "kRepeatedBytes" if is_repeated else "kBytes"
    if kind in (_DOUBLE, _FLOAT):
        return "kBytes" if is_repeated else "fixed"  # packed
    if is_repeated:
        return "kNumbers"
    return "kFlag" if kind == _BOOL else "kNumber"


def _bytes(value: bytes | int) -> bytes:
    assert isinstance(value, bytes)
    return value


def _text(value: bytes | int) -> str:
    return _bytes(value).decode()


def _fields(data: bytes | mmap.mmap, position: int) -> Iterator[tuple[int, bytes | int]]:
    """Number and value of each field, up to the first that is neither a number nor bytes."""
    while position < len(data):
        tag, position = _varint(data, position)
        value: bytes | int
        value, position = _varint(data, position)
        if tag & 7 == 2:
            size = int(value)
            value, position = data[position : position + size], position + size
        elif tag & 7 != 0:
            return
        yield tag >> 3, value


def _varint(data: bytes | mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
