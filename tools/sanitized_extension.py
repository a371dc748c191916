# SPDX-License-Identifier: Apache-2.0
"""Runs the extension module under AddressSanitizer with the real CPU plugin.

Called by run_tests.py, which has built the preset 'asan' by then.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from soak import EXPECT_REPORT
from steps import BUILD, ROOT, run, step

_SCRIPT = ROOT / "tests" / "sanitized" / "exercise.py"


def _runtime_library(name: str) -> str:
    command = ["g++", f"-print-file-name={name}"]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=10
    ).stdout.strip()


def check_extension(python: Path) -> None:
    """Use the module that is built with the sanitizers as a program would; then plant a fault."""
    site = BUILD / "asan" / "site"
    run(["cmake", "--install", BUILD / "asan", "--prefix", site])
    modules = shutil.ignore_patterns("*.p[yx][xdi]", "_native", "__pycache__")
    shutil.copytree(ROOT / "python" / "cyxla", site / "cyxla", dirs_exist_ok=True, ignore=modules)
    variables = {
        "PYTHONPATH": str(site),
        # The sanitizer comes first, and before it can look for __cxa_throw there must be one.
        "LD_PRELOAD": f"{_runtime_library('libasan.so')} {_runtime_library('libstdc++.so')}",
        # Python and the plugin keep memory until the process ends.
        "ASAN_OPTIONS": "detect_leaks=0:strict_string_checks=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Each object of Python in memory of its own, so that reading beyond one is seen.
        "PYTHONMALLOC": "malloc",
    }
    settings = [f"{name}={value}" for name, value in variables.items()]
    # env(1), so that what runs the command is not itself under the sanitizer.
    command: list[str | Path] = ["env", *settings, python, _SCRIPT]
    with step("the extension module under AddressSanitizer"):
        run(command, cwd=BUILD, timeout=900)
    with step("the extension module under AddressSanitizer, with a planted fault"):
        run([EXPECT_REPORT, "heap-buffer-overflow", *command, "--plant"], cwd=BUILD, timeout=900)
