# SPDX-License-Identifier: Apache-2.0
"""Reads the kinds of the steps of a program that an XLA CPU plugin compiled and serialized.

XLA calls the steps thunks. Only the fields on the way to them are read; other wire types and
repetitions than theirs are errors.
"""

from __future__ import annotations

from collections.abc import Iterator

# The kinds that the direct route executes.
DIRECT_KINDS = frozenset({"kernel", "copy", "call", "while", "conditional"})

_EXECUTABLE_RESULT = 1  # ExecutableAndOptionsProto: serialized CompilationResultProto
_RESULT_STEPS = 6  # CompilationResultProto: ThunkSequenceProto
_SEQUENCE_STEP = 1  # ThunkSequenceProto: repeated ThunkProto
_STEP_KIND, _STEP_INFO = 1, 2  # ThunkProto: name of its kind, ThunkInfo; any other is the step
# ThunkProto's alternatives that hold sequences, and the fields of those.
_NESTED = {3: ("call", {1}), 4: ("conditional", {1}), 10: ("while", {1, 2})}


def step_kinds(serialized: bytes) -> set[str]:
    """The kinds of all steps, nested ones included, as XLA spells them."""
    result = _one(serialized, _EXECUTABLE_RESULT)
    return _kinds(_one(result, _RESULT_STEPS, default=b""))


def _kinds(sequence: bytes) -> set[str]:
    kinds: set[str] = set()
    for number, step in _fields(sequence):
        if number != _SEQUENCE_STEP:
            kinds.add(f"field {number} of a sequence")
            continue
        kinds |= _kinds_of_step(_bytes(number, step))
    return kinds


def _kinds_of_step(step: bytes) -> set[str]:
    kind = _one(step, _STEP_KIND).decode()
    kinds = {kind}
    alternatives = [field for field in _fields(step) if field[0] not in (_STEP_KIND, _STEP_INFO)]
    if len(alternatives) != 1:
        raise ValueError(f"a step of kind {kind!r} has {len(alternatives)} alternatives")
    number, what = alternatives[0]
    if number in _NESTED:
        name, sequences = _NESTED[number]
        if kind != name:
            raise ValueError(f"a step is called {kind!r}, and its field is that of {name!r}")
        for inner, value in _fields(_bytes(number, what)):
            if inner in sequences:
                kinds |= _kinds(_bytes(inner, value))
    return kinds


def _one(message: bytes, wanted: int, default: bytes | None = None) -> bytes:
    found = [_bytes(number, value) for number, value in _fields(message) if number == wanted]
    if not found and default is not None:
        return default
    if len(found) != 1:
        raise ValueError(f"field {wanted} occurs {len(found)} times")
    return found[0]


def _bytes(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise TypeError(f"field {number} is a number, not a message")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Number and value of each field: bytes for the wire type with a length, else an int."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire_type == 2:
            size, position = _varint(message, position)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"field {number} has the wire type {wire_type}")
        end = position + size
        if number == 0 or end > len(message):
            raise ValueError(f"field {number} of {size} bytes at {position} of {len(message)}")
        content = message[position:end]
        yield number, content if wire_type == 2 else int.from_bytes(content, "little")
        position = end


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position == len(message):
            break
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError(f"no number ends before byte {position}")
