# SPDX-License-Identifier: Apache-2.0
"""The tables of src/direct/read/tables.h beside the descriptors of the installed plugins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import cyxla
from cpu_plugins import CPU_LIBRARIES, variables
from proto_descriptors import Field, Messages, messages_of

_TABLES = Path(__file__).resolve().parents[3] / "src/direct/read/tables.h"
_TABLE = re.compile(
    r"// (?P<proto>xla/\S+\.proto): (?P<message>\w+(?:\.\w+)?)[^\n]*\n(?://[^\n]*\n)*"
    r"inline constexpr Row k\w+\[\] = \{(?P<rows>.*?)\};\n",
    re.DOTALL,
)
_ROW = re.compile(r'\{(?P<number>\d+), "(?P<name>\w+)", (?P<kind>k\w+)(?:, k\w+)?\}')
# The tables have the names and numbers of this one's XLA.
_REFERENCE = CPU_LIBRARIES[0]


class Table(NamedTuple):
    """A table of the header."""

    proto: str
    message: str
    rows: dict[int, Field]


def tables() -> Iterator[Table]:
    """Every table of the header."""
    for table in _TABLE.finditer(_TABLES.read_text()):
        rows = {
            int(row["number"]): Field(row["name"], row["kind"])
            for row in _ROW.finditer(table["rows"])
        }
        yield Table(table["proto"], table["message"], rows)


def descriptors(plugin: str) -> dict[str, Messages]:
    """The messages of every .proto file of the tables, as a plugin has them."""
    path = Path(variables(plugin)[cyxla.PLUGIN_ENVIRONMENT_VARIABLE])
    return {proto: messages_of(path, proto) for proto in {table.proto for table in tables()}}


def test_every_table_is_found() -> None:
    text = _TABLES.read_text()
    found = list(tables())
    assert len(found) == text.count("inline constexpr Row ") > 30
    assert sum(len(table.rows) for table in found) == len(re.findall(r"\{\d+,", text))


@pytest.mark.parametrize("plugin", CPU_LIBRARIES)
def test_rows_are_the_fields_of_the_plugin(plugin: str) -> None:
    known = descriptors(plugin)
    wrong = []
    for table in tables():
        fields = known[table.proto].get(table.message, {})
        assert fields or plugin != _REFERENCE, f"{plugin} has no {table.message}"
        for number, row in table.rows.items():
            # Other plugins may be older, and lack a field.
            field = fields.get(number) if plugin == _REFERENCE else fields.get(number, row)
            if field != row:
                wrong.append(f"{table.message}: {number} is {field}, not {row}")
    assert not wrong
