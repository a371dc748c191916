# SPDX-License-Identifier: Apache-2.0
"""`python -m cyxla build`."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import cyxla
from child_process import run_code
from cyxla.__main__ import main


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "sine.cyxla"
    shape = jax.ShapeDtypeStruct((3,), "f4")
    cyxla.lower(lambda x: jnp.sin(x) * 2, [shape], platform="cpu", name="sine").save(path)
    return path


def test_it_builds_a_saved_program(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "libsine.a"
    assert main(["build", str(saved), "-o", str(output), "--name", "robot"]) == 0
    printed = capsys.readouterr().out
    assert f"{output}: {output.stat().st_size} bytes; header {tmp_path / 'libsine.h'}" in printed
    assert "robot_sine(x, result): equal in 256 trials" in printed
    assert "needs: sinf" in printed


def test_it_needs_no_jax(saved: Path, tmp_path: Path) -> None:
    output = tmp_path / "sine.o"
    run_code(
        f"""
        import sys
        sys.modules["jax"] = sys.modules["jaxlib"] = None
        from cyxla.__main__ import main
        options = ["--target", "aarch64-linux-gnu", "--cpu", "cortex-a72", "--optional", "result"]
        options += ["--inexact", "--flush-subnormals"]
        assert main(["build", {str(saved)!r}, "-o", {str(output)!r}, *options]) == 0
        """
    )
    assert output.read_bytes()[18:20] == b"\xb7\0"  # the number of AArch64
    assert "(cortex-a72)" in " ".join(output.with_suffix(".h").read_text().split())


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("missing.cyxla", [], "missing.cyxla"),
        ("", ["--target", "vax"], "target 'vax'"),
        ("", ["--optional", "y"], "no output is called 'y'"),
    ],
)
def test_an_error_is_a_line_and_an_exit_code(
    saved: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    options: list[str],
    message: str,
) -> None:
    given = str(tmp_path / file) if file else str(saved)
    assert main(["build", given, "-o", str(tmp_path / "x.o"), *options]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("python -m cyxla build: ")
    assert message in printed.err
    assert list(tmp_path.iterdir()) == []
