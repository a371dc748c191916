# SPDX-License-Identifier: Apache-2.0
"""Runs the hot path under Valgrind's memcheck. Called by run_tests.py, which builds it first."""

from __future__ import annotations

from pathlib import Path

from soak import EXPECT_REPORT, FAKE_PLUGIN, FOLDER, SOAK, arguments, cpu_plugin
from steps import ROOT, run, step

_PLANTED = FOLDER / "tests" / "cpp" / "planted" / "planted"
_FAULTS = {
    "heap_overflow": "Invalid write of size 1",
    "use_after_free": "Invalid read of size 4",
    "uninitialized_read": "uninitialised value",
    "leak": "100 bytes in 1 blocks are definitely lost",
}
_MEMCHECK = (
    "valgrind",
    "--quiet",
    "--error-exitcode=99",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,indirect",
    "--num-callers=30",
    f"--suppressions={ROOT / 'tests' / 'soak' / 'memcheck.supp'}",
)
# Every way to call, on threads, with programs that come and go.
_FAKE = {"pjrt-calls": 4000, "threads": 4, "compilations": 5, "cycles": 5, "alive": 5}
_REAL = {"pjrt-calls": 400, "direct-calls": 4000, "threads": 4, "compilations": 2, "alive": 2}


def run_memcheck(python: Path) -> None:
    """Check calls with the fake plugin and the default CPU plugin; planted faults must show."""
    for fault, text in _FAULTS.items():
        with step(f"memcheck of a planted fault: {fault}"):
            run([EXPECT_REPORT, text, *_MEMCHECK, _PLANTED, fault])
    with step("memcheck with the fake plugin"):
        run([*_MEMCHECK, SOAK, FAKE_PLUGIN, "--fake", "--any-memory", *arguments(_FAKE)])
    with step("memcheck with the CPU plugin"):
        run([*_MEMCHECK, SOAK, cpu_plugin(python), "--any-memory", *arguments(_REAL)])
