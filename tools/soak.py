# SPDX-License-Identifier: Apache-2.0
"""Runs the soak of tests/soak. Called by run_tests.py, which builds it first."""

from __future__ import annotations

from pathlib import Path

from steps import BUILD, ROOT, run, step

FOLDER = BUILD / "dev"
FRESH_PROCESSES = ROOT / "tests" / "soak" / "fresh_processes.py"
SOAK = FOLDER / "tests" / "soak" / "soak"
FAKE_PLUGIN = FOLDER / "fake_pjrt_plugin.so"
EXPECT_REPORT = ROOT / "tests" / "cpp" / "planted" / "expect_report.sh"

# What 'make soak' runs, and what 'make test' does.
_FULL = {
    "fake": {"cycles": 10_000, "pjrt-calls": 1_000_000, "compilations": 1000, "alive": 1000},
    "real": {
        "cycles": 1000,
        "pjrt-calls": 2_000_000,
        "direct-calls": 8_000_000,
        "compilations": 400,
        "alive": 1000,
    },
}
_SHORT = {
    "fake": {"cycles": 1000, "pjrt-calls": 50_000, "compilations": 50, "alive": 100},
    "real": {
        "cycles": 60,
        "pjrt-calls": 100_000,
        "direct-calls": 1_000_000,
        "compilations": 20,
        "alive": 40,
    },
}
# Faults that the soak makes itself, and which have to make it fail.
_PLANTED = {
    "leak-per-call": {"pjrt-calls": 100_000},
    "leak-per-compilation": {"cycles": 1000},
    "wrong-result": {"pjrt-calls": 1000},
}
# Fresh processes that must agree; a Python test compares a few.
_NUM_PROCESSES = 30
_TIMEOUT_SECONDS = 3000


def arguments(counts: dict[str, int]) -> list[str]:
    """Return the soak's command line for these counts."""
    return [word for name, count in counts.items() for word in (f"--{name}", str(count))]


def cpu_plugin(python: Path) -> Path:
    """Return the library of the default CPU plugin of an environment that has cyxla."""
    code = "import cyxla; print(cyxla.find_plugin('cpu').path)"
    return Path(run([python, "-c", code], cwd=BUILD, timeout=100)[-1])


def run_soak(python: Path, *, full: bool) -> None:
    """Run the soak with the fake plugin and the default CPU plugin, then with planted faults."""
    counts = _FULL if full else _SHORT
    with step("soak with the fake plugin"):
        run([SOAK, FAKE_PLUGIN, "--fake", *arguments(counts["fake"])], timeout=_TIMEOUT_SECONDS)
    with step("soak with the CPU plugin"):
        run([SOAK, cpu_plugin(python), *arguments(counts["real"])], timeout=_TIMEOUT_SECONDS)
    if full:
        with step(f"{_NUM_PROCESSES} fresh processes under load"):
            run([python, FRESH_PROCESSES, str(_NUM_PROCESSES)], cwd=BUILD, timeout=_TIMEOUT_SECONDS)
    for fault, planted_counts in _PLANTED.items():
        with step(f"soak with a planted fault: {fault}"):
            command: list[str | Path] = [
                SOAK,
                FAKE_PLUGIN,
                "--fake",
                *arguments(planted_counts),
                f"--{fault}",
            ]
            run([EXPECT_REPORT, "soak: FAILED", *command])
