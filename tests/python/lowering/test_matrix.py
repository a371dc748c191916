# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/matrix on this interpreter's own JAX, with each plugin.

`make matrix` runs more programs, on every JAX.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrix
from support.programs.check import Difference, compare

sys.path.append(str(matrix.CELL.parent))

# Half of the time that a cell takes on a busy machine.
SECONDS = 240


@pytest.fixture(scope="module")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs as this JAX lowered them."""
    folder = tmp_path_factory.mktemp("matrix") / "programs"
    assert matrix.lower_programs(sys.executable, folder, brief=True) == {}
    return folder


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("plugin", matrix.PLUGINS)
def test_every_program_is_right(lowered: Path, plugin: str) -> None:
    from programs import BRIEF

    library = matrix.PLUGINS[plugin]
    cell = matrix.run_cell(sys.executable, "run", lowered, library, brief=True)
    assert matrix.holes({plugin: cell}) == []
    assert set(cell) == set(BRIEF)
    assert len(BRIEF) >= 80


def test_the_page_lists_the_programs() -> None:
    from programs import BRIEF, PROGRAMS

    text = matrix.PAGE.read_text()
    listed = re.findall(r"^\| (.+) \| \d+ \|$", text, re.M)
    assert set(BRIEF) <= set(listed) <= set(PROGRAMS)
    assert all(f"| {jax} |" in text for jax in matrix.ROWS)
    assert all(plugin in text for plugin in matrix.PLUGINS)


def wrong_cell(tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> matrix.Cell:
    script = tmp_path / "cell.py"
    script.write_text(code)
    monkeypatch.setattr(matrix, "CELL", script)
    return matrix.run_cell(sys.executable, "run", tmp_path, brief=True, seconds=5)


def test_a_crash_is_the_failure_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os
print('{"starts": "a"}'); print('{"name": "a", "fault": ""}')
print('{"starts": "b"}', flush=True); os.abort()
"""
    cell = wrong_cell(tmp_path, code, monkeypatch)
    assert cell["a"] == ""
    assert cell["b"] == "the process: exit status -6"
    assert "exit status -6" in cell["the whole cell"]
    assert len(matrix.holes({"x": cell})) == 2


def test_a_hang_is_the_failure_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import time
print('{"starts": "a"}', flush=True); time.sleep(60)
"""
    cell = wrong_cell(tmp_path, code, monkeypatch)
    assert cell["a"] == "the process: not ended after 5 s"
    assert list(cell) == ["a", "the whole cell"]


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([], "0 outputs instead of 1"),
        ([np.array([1.0, 2.0], "f8")], r"output 0 is float64\(2,\), not float32\(2,\)"),
        ([np.array([[1.0, 2.0]], "f4")], r"output 0 is float32\(1, 2\)"),
        ([np.array([1.0, 2.0001], "f4")], "output 0 differs by 5.0e-05 of its largest value"),
        ([np.array([np.nan, 2.0], "f4")], "output 0 differs by"),
    ],
)
def test_differences_that_are_found(got: list[Any], message: str) -> None:
    wanted = [np.array([1.0, 2.0], "f4")]
    compare([np.array([1.0, 2.00001], "f4")], wanted)
    with pytest.raises(Difference, match=message):
        compare(got, wanted)


def test_integers_are_compared_exactly() -> None:
    with pytest.raises(Difference, match="output 0 differs in 1 of 2"):
        compare([np.array([1, 2**40 + 1])], [np.array([1, 2**40])])


def test_callbacks_that_see_something_else_are_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import cell

    program = cell.PROGRAMS["io_callback"]
    effects = iter([["seen"], ["seen otherwise"]])
    monkeypatch.setattr(cell, "watched", lambda call: (call(), next(effects)))
    with pytest.raises(cell.Difference, match=r"its callbacks saw \['seen otherwise'\]"):
        cell.compare_callbacks("io_callback", program)
