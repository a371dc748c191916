# SPDX-License-Identifier: Apache-2.0
"""The benchmark runs, lists missing rivals, and catches wrong results."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.checks

_RUN = Path(__file__).resolve().parents[3] / "benchmarks" / "run.py"
_RIVAL = """
import numpy as np
from loops import PythonLoop
from rivals import Rival

def prepare(case):
    (x,) = case.inputs
    return PythonLoop({function})

RIVALS = (Rival("extra", "extra", "Python", prepare),)
"""


def _run(*arguments: str | Path, seconds: float = 200) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(_RUN), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def _run_with(folder: Path, text: str) -> tuple[int, dict[str, Any], str]:
    """The output of a quick run of one task with two known rivals and an extra one."""
    rival = folder / "extra.py"
    rival.write_text(textwrap.dedent(text))
    only = [
        word for name in ("cyxla-run", "jax-jit", "extra") for word in ("--only", f"sin-3/{name}")
    ]
    ended = _run("--quick", "--part", "times", *only, "--rival", rival, "--output", folder)
    assert ended.returncode in (0, 1), ended.stderr
    (task,) = json.loads((folder / "result.json").read_text())["tasks"]
    return ended.returncode, {entry["rival"]: entry for entry in task["rivals"]}, ended.stderr


def test_right_rival_is_measured_beside_the_others(tmp_path: Path) -> None:
    status, rivals, _ = _run_with(tmp_path, _RIVAL.format(function="lambda: [np.sin(x) * 2]"))
    assert status == 0
    assert {entry["status"] for entry in rivals.values()} == {"measured"}
    assert all(len(entry["samples"]) == 5 for entry in rivals.values())
    assert rivals["extra"]["seconds"]["median"] > 0
    assert "NumPy to NumPy" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize(
    "function",
    [
        "lambda: [np.sin(x) * np.float32(2.0001)]",
        "lambda first=np.sin(case.inputs[0]) * 2: [first]",  # the previous result
        "lambda: [np.full(3, np.nan, np.float32)]",
        "lambda: [np.sin(x) * 2] * 2",
        "lambda: [np.sin(x[:1]) * 2]",
    ],
)
def test_wrong_rival_is_caught_and_not_timed(tmp_path: Path, function: str) -> None:
    status, rivals, errors = _run_with(tmp_path, _RIVAL.format(function=function))
    assert status == 1
    assert rivals["extra"]["status"] == "wrong"
    assert "samples" not in rivals["extra"]
    assert "after the timing" not in rivals["extra"]["reason"]
    assert rivals["cyxla-run"]["status"] == "measured"
    assert "sin-3/extra is wrong: " in errors


def test_rival_that_turns_wrong_while_it_is_timed_is_caught(tmp_path: Path) -> None:
    text = """
        import numpy as np
        from loops import PythonLoop
        from rivals import Rival

        def prepare(case):
            (x,) = case.inputs
            calls = 0
            def call():
                nonlocal calls
                calls += 1
                return [np.sin(x) * (2 if calls < 20 else 3)]
            return PythonLoop(call)

        RIVALS = (Rival("extra", "extra", "Python", prepare),)
    """
    status, rivals, _ = _run_with(tmp_path, text)
    assert status == 1
    assert rivals["extra"]["status"] == "wrong"
    assert "after the timing" in rivals["extra"]["reason"]


def test_rival_without_its_package_is_listed_as_missing(tmp_path: Path) -> None:
    text = """
        from rivals import Rival

        def prepare(case):
            import a_missing_package

        RIVALS = (Rival("extra", "extra", "Python", prepare),)
    """
    status, rivals, errors = _run_with(tmp_path, text)
    assert status == 0
    assert rivals["extra"]["status"] == "missing"
    assert "a_missing_package" in rivals["extra"]["reason"]
    assert "a_missing_package" in errors
    assert "extra, missing (sin-3)" in (tmp_path / "table.md").read_text()


def test_rival_that_raises_fails_alone(tmp_path: Path) -> None:
    status, rivals, _ = _run_with(tmp_path, _RIVAL.format(function="lambda: [x / [0, 1]]"))
    assert status == 1
    assert rivals["extra"]["status"] == "failed"
    assert rivals["jax-jit"]["status"] == "measured"


def test_every_part_runs(tmp_path: Path) -> None:
    chosen = ("cyxla-execute", "bare-kept", "jax-jit", "hand-c")
    only = [word for name in chosen for word in ("--only", f"robertson/{name}")]
    ended = _run("--quick", *only, "--output", tmp_path)
    assert ended.returncode == 0, ended.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert [task["task"] for task in result["tasks"]] == ["robertson"]
    for part in ("inputs", "sizes", "threads", "latency", "goals"):
        assert result[part], part
    assert {entry["threads"] for entry in result["threads"]} == {1, 2, 4}
    for entry in result["latency"]:
        times = entry["nanoseconds"]
        assert 0 < times["p50"] <= times["p99"] <= times["p99.9"] <= times["worst"]
    for plot in ("times", "growth"):
        for form in ("light", "dark"):
            assert (tmp_path / f"{plot}-{form}.png").read_bytes().startswith(b"\x89PNG")
    versions, plugin = result["run"]["versions"], result["run"]["plugin"]
    assert versions["jax"]
    assert plugin["source"]
    assert str(Path.home()) not in (tmp_path / "result.json").read_text()


def test_kinds_of_arguments(tmp_path: Path) -> None:
    ended = _run("--quick", "--part", "arguments", "--output", tmp_path)
    assert ended.returncode == 0, ended.stderr
    entries = json.loads((tmp_path / "result.json").read_text())["arguments"]
    kinds = {entry["kind"]: entry for entry in entries}
    assert {"float", "np.float64", "strided", "float32", "big-endian", "list"} < kinds.keys()
    assert kinds["strided"]["limit_nanoseconds"] == 150
    asarray = kinds["np.asarray of a new jax.Array"]["seconds"]["minimum"]
    assert kinds["jax.Array"]["limit_nanoseconds"] == pytest.approx(asarray * 1e9 / 3)
    assert all(entry["seconds"]["minimum"] > 0 for entry in entries)
    assert "| strided, vector |" in (tmp_path / "table.md").read_text()


def test_lowering_as_programs_grow(tmp_path: Path) -> None:
    ended = _run("--quick", "--part", "lowering", "--output", tmp_path)
    assert ended.returncode == 0, ended.stderr
    entries = json.loads((tmp_path / "result.json").read_text())["lowering"]
    sizes: dict[str, list[int]] = {}
    for entry in entries:
        sizes.setdefault(entry["program"], []).append(entry["size"])
        assert 0 < entry["seconds"] == pytest.approx(entry["ratio"] * entry["jax_seconds"])
        assert entry["met"] == (entry["ratio"] <= 1.5)
    assert len(sizes) == 4
    assert sizes["sin(x) + x * i"] == [3, 30, 300]
    assert "| sin(x) + x * i | 300 |" in (tmp_path / "table.md").read_text()


def test_compiling_small_products_is_bounded(tmp_path: Path) -> None:
    ended = _run("--quick", "--part", "products", "--output", tmp_path)
    assert ended.returncode == 0, ended.stderr
    entries = json.loads((tmp_path / "result.json").read_text())["products"]
    found = {(entry["size"], entry["products"]): entry for entry in entries}
    assert found.keys() == {(8, 1), (8, 30), (20, 1), (20, 30)}
    assert all(entry["exact_seconds"] > 0 for entry in entries)
    assert [found[8, count]["second_form_seconds"] is None for count in (1, 30)] == [False, True]
    assert [found[20, count]["route"] for count in (1, 30)] == ["direct", "pjrt"]
    assert "processor seconds of a compilation" in (tmp_path / "table.md").read_text()


def test_the_limit_of_compiling_is_a_goal() -> None:
    code = "from goals import keeps_compile_limit as keeps; print(keeps(54, 9), keeps(0.4, 0.1))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=_RUN.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout.split() == ["False", "True"], ended.stderr


def test_list_names_tasks_and_rivals() -> None:
    ended = _run("--list")
    assert ended.returncode == 0, ended.stderr
    assert "rosenbrock-100" in ended.stdout
    assert "cyxla-execute-moving-copy-pjrt" in ended.stdout
