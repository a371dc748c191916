# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the fuzzers of tests/fuzz. Called by run_tests.py, which installs cyxla first."""

from __future__ import annotations

import shutil
from pathlib import Path

from environment import requirements
from soak import EXPECT_REPORT
from steps import BUILD, ROOT, configure, digest, is_done, mark_done, run, step

FUZZERS = ("read_plan", "attributes", "options", "program_file")
# What a fuzzer's last lines tell of its executions.
EXECUTED = "stat::number_of_executed_units"
# Without a corpus of its own a fuzzer begins with nothing.
_WITH_CORPUS = ("read_plan",)
_FOLDER = BUILD / "fuzz"
# Without a time: what continuous integration runs of each fuzzer, always the same.
_EXECUTIONS = {
    "read_plan": 15_000,
    "attributes": 250_000,
    "options": 150_000,
    "program_file": 150_000,
}
# A planted fault is found within half a minute, beginning with a few small programs.
_PLANTED_SECONDS = 900
_NUM_SMALL = 4
_SECONDS_PER_INPUT = 10


def _corpus(fuzzer: str, python: Path) -> Path:
    """Return a folder with the programs that fuzzing begins with, and what earlier runs found."""
    script = ROOT / "tests" / "fuzz" / "make_corpus.py"
    folder = _FOLDER / "corpus" / fuzzer
    if fuzzer not in _WITH_CORPUS:
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    stamp, content = _FOLDER / f"corpus-{fuzzer}.stamp", digest([script, *requirements(["test"])])
    if not folder.is_dir() or not is_done(stamp, content):
        with step(f"making the corpus of {fuzzer}"):
            run([python, script, folder], cwd=_FOLDER)
            mark_done(stamp, content)
    return folder


def _small_corpus(fuzzer: str, python: Path) -> Path:
    """Return a new folder with the smallest programs of the corpus, which execute fastest."""
    folder = _FOLDER / "small" / fuzzer
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Those that earlier runs found have a hash for a name.
    programs = [path for path in _corpus(fuzzer, python).iterdir() if "-" in path.name]
    for path in sorted(programs, key=lambda path: (path.stat().st_size, path.name))[:_NUM_SMALL]:
        shutil.copy(path, folder)
    return folder


def build_fuzzers(python: Path) -> None:
    """Build all fuzzers with Clang."""
    with step("building the fuzzers"):
        configure("fuzz", python)
        run(["cmake", "--build", "--preset", "fuzz", "--parallel", "2"])


def _command(executable: str, findings: Path, corpus: Path) -> list[str | Path]:
    findings.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [_FOLDER / "tests" / "fuzz" / executable, corpus]
    command += [f"-artifact_prefix={findings}/", f"-timeout={_SECONDS_PER_INPUT}"]
    return [*command, "-print_funcs=0", "-print_final_stats=1"]


def fuzz_command(fuzzer: str, python: Path, seconds: int) -> list[str | Path]:
    """Return the command that runs a fuzzer: for some seconds, or a fixed number of inputs for 0.

    An input that shows a fault is left in build/fuzz/findings, and the command fails.
    """
    corpus = _corpus(fuzzer, python)
    command = [*_command(f"{fuzzer}_fuzzer", _FOLDER / "findings", corpus), "-verbosity=0"]
    if seconds:
        return [*command, f"-max_total_time={seconds}"]
    # The corpus is executed too, as it is.
    return [*command, "-seed=1", f"-runs={_EXECUTIONS[fuzzer] + sum(1 for _ in corpus.iterdir())}"]


def find_planted(fuzzer: str, python: Path) -> None:
    """Run the fuzzer over a library with a fault planted in it, which it has to find."""
    command = _command(f"{fuzzer}_planted", _FOLDER / "planted", _small_corpus(fuzzer, python))
    with step(f"fuzzing {fuzzer} with a planted fault"):
        run(
            [EXPECT_REPORT, "SUMMARY: ", *command, "-seed=1", f"-max_total_time={_PLANTED_SECONDS}"]
        )
