# SPDX-License-Identifier: Apache-2.0
"""Compiles the modules of tests/python/native, and imports them here or in a child process."""

from __future__ import annotations

import importlib
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

import cyxla
from child_process import run_code, run_process
from cpu_plugins import variables

_TESTS = Path(__file__).parents[1]
_LANGUAGES = {".c": ("cc", "-std=c11"), ".cpp": ("c++", "-std=c++20")}


def build_modules(factory: pytest.TempPathFactory) -> Path:
    """Compile the modules against the installed headers, once a session; return their folder."""
    folder = factory.getbasetemp() / "native"
    folder.mkdir(exist_ok=True)
    for source in sorted((_TESTS / "native").iterdir()):
        target = module_file(folder, source.stem)
        if source.suffix in _LANGUAGES and not target.exists():
            compile_module(source, target, Path(cyxla.get_include()[0]))
    return folder


def module_file(folder: Path, name: str) -> Path:
    """The file that an extension module of this name has in a folder."""
    return folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"


def compile_module(source: Path, target: Path, include: Path, *options: str) -> None:
    """Compile an extension module against the headers of a folder."""
    compiler, standard = _LANGUAGES[source.suffix]
    command: list[str | Path] = [compiler, standard, "-O2", "-fPIC", "-shared", "-pthread"]
    command += ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command += ["-isystem", sysconfig.get_path("include"), "-I", include]
    command += [*options, source, "-o", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr


def import_module(folder: Path, name: str) -> ModuleType:
    """Import one of the compiled modules into this process."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def run_with_modules(
    folder: Path, code: str, env: Mapping[str, str] | None = None, seconds: float = 100
) -> str:
    """Run code in a process of its own that can import the compiled modules and `support`."""
    return run_code(code, env={**(env or {}), "PYTHONPATH": str(folder)}, seconds=seconds)


def run_tests_on_plugin(library: str, file: str, selection: str, seconds: float) -> None:
    """Run the selected tests of a file in a child process, with one of CPU_LIBRARIES."""
    root = _TESTS.parents[1]
    configuration = ("-c", f"{root}/pyproject.toml", f"--rootdir={root}", "-p", "no:cacheprovider")
    ended = run_process(
        *("-m", "pytest", *configuration, "-q", file, "-k", selection),
        env=variables(library),
        seconds=seconds,
    )
    assert ended.returncode == 0, ended.stdout
    assert " passed" in ended.stdout
