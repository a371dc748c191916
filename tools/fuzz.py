# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the fuzzers of tests/fuzz. Called by run_tests.py, which installs cyxla first."""

from __future__ import annotations

from pathlib import Path

from environment import requirements
from steps import BUILD, ROOT, configure, digest, is_done, mark_done, run, step

FUZZERS = ("read_plan",)
_FOLDER = BUILD / "fuzz"
# Without a time: what continuous integration runs of each fuzzer, always the same.
_EXECUTIONS = 30_000
_SECONDS_PER_INPUT = 10


def _corpus(fuzzer: str, python: Path) -> Path:
    """Return a folder with the programs that fuzzing begins with, and what earlier runs found."""
    script = ROOT / "tests" / "fuzz" / "make_corpus.py"
    folder = _FOLDER / "corpus" / fuzzer
    stamp, content = _FOLDER / f"corpus-{fuzzer}.stamp", digest([script, *requirements(["test"])])
    if not folder.is_dir() or not is_done(stamp, content):
        with step(f"making the corpus of {fuzzer}"):
            run([python, script, folder], cwd=_FOLDER)
            mark_done(stamp, content)
    return folder


def build_fuzzers(python: Path) -> None:
    """Build all fuzzers with Clang."""
    with step("building the fuzzers"):
        configure("fuzz", python)
        run(["cmake", "--build", "--preset", "fuzz", "--parallel", "2"])


def fuzz_command(fuzzer: str, python: Path, seconds: int) -> list[str | Path]:
    """Return the command that runs a fuzzer: for some seconds, or a fixed number of inputs for 0.

    An input that shows a fault is left in build/fuzz/findings, and the command fails.
    """
    corpus = _corpus(fuzzer, python)
    findings = _FOLDER / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [_FOLDER / "tests" / "fuzz" / f"{fuzzer}_fuzzer", corpus]
    command += [f"-artifact_prefix={findings}/", f"-timeout={_SECONDS_PER_INPUT}"]
    command += ["-print_funcs=0", "-verbosity=0"]
    if seconds:
        return [*command, f"-max_total_time={seconds}"]
    # The corpus is executed too, as it is.
    return [*command, "-seed=1", f"-runs={_EXECUTIONS + sum(1 for _ in corpus.iterdir())}"]
