# SPDX-License-Identifier: Apache-2.0
"""Runs the tests, all of them or a part; ends with the tests that failed and the runners' counts.

    python3 tools/run_tests.py                                   # everything, as 'make test'
    python3 tools/run_tests.py ctest                             # one part, of PARTS below
    python3 tools/run_tests.py pytest --version 3.12 -- -k name  # one interpreter, a few tests

A part that fails does not stop the others. A missing interpreter is a failure when CI=true.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from environment import environment_folder, make_environment
from fuzz import EXECUTED, FUZZERS, build_fuzzers, find_planted, fuzz_command
from matrix import ROWS
from memcheck import run_memcheck
from package import install_wheel
from pythons import VERSIONS, find_pythons
from sanitized_extension import check_extension
from soak import run_soak
from steps import BUILD, PREFIX, ROOT, StepError, configure, run, say, side_by_side, step

# What runs without a part named; the formatter runs on request. The first parts keep two cores
# busy; those of LANES keep one, so each lane runs beside the other.
PARTS = ("environments", "lint", "ctest", "sanitize", "pytest")
LANES = (("matrix", "memcheck", "soak"), ("fuzz",))
ALL_PARTS = (*PARTS, *itertools.chain.from_iterable(LANES))

# What memcheck and the soak run, of the preset 'dev'.
_SOAK_TARGETS = ("soak", "fake_pjrt_plugin", "planted")

# How pytest and ctest name a test that failed, in the lists that they end with.
_FAILED_TEST = re.compile(r"(FAILED|ERROR) \S+\.py|\s*\d+ - \S+ \([^()]+\)$")


def _fixed_addresses() -> list[str]:
    """Return the command that switches off address randomization, or nothing where it may not."""
    command = ["setarch", "--addr-no-randomize"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return []
    return command


def closing_lines(lines: Sequence[str], mark: str) -> list[str]:
    """Return which tests failed, as a runner printed it, and its last line with `mark` in it."""
    failed = [line.strip()[:200] for line in lines if _FAILED_TEST.match(line)]
    return [*failed, next((line for line in reversed(lines) if mark in line), "no closing line")]


class Session:
    """One run: the interpreters it uses, and what it has to print again at its end."""

    def __init__(
        self,
        pythons: dict[str, Path],
        pytest_arguments: list[str],
        *,
        fuzz_seconds: int,
        full: bool,
        whole: bool,
    ) -> None:
        self.pythons = pythons
        self.pytest_arguments = pytest_arguments
        self.fuzz_seconds = fuzz_seconds
        self.full = full
        self.whole = whole
        self.closing_lines: list[str] = []
        self.failures: list[str] = []
        self.seconds: dict[str, float] = {}
        # The linters and the build of the C++ tests use the oldest interpreter, the whole Python
        # suite runs on the newest.
        self.main_version = next(iter(pythons))
        self.suite_version = list(pythons)[-1]

    def run_parts(self, parts: Iterable[str], *, named: bool = False) -> None:
        """Run these parts one after the other; note the seconds of each, and failures.

        With `named`, each line that a part prints begins with its name.
        """
        for part in parts:
            PREFIX.set(f"[{part}] " if named else "")
            start = time.monotonic()
            try:
                getattr(self, part)()
            except StepError as error:
                self.failures.append(f"{part}: {error}")
            self.seconds[part] = time.monotonic() - start

    def run_lanes(self) -> None:
        """Run the lanes beside each other."""
        side_by_side(partial(self.run_parts, lane, named=True) for lane in LANES)

    def environment(self, version: str) -> Path:
        """Return the interpreter of the environment of a version, making it first."""
        task = "check" if version == self.main_version else "test"
        return make_environment(version, self.pythons[version], task)

    def environments(self) -> None:
        """Make the environments of all interpreters, two at a time: pip uses one core."""
        side_by_side(partial(self.environment, version) for version in self.pythons)

    def lint(self) -> None:
        """Run every check of the source text."""
        run([self.environment(self.main_version), "tools/lint.py"])

    def format(self) -> None:
        """Rewrite the sources as the formatters want them."""
        run([self.environment(self.main_version), "tools/lint.py", "--format"])

    def ctest(self) -> None:
        """Build and run the C++ tests; with sanitize() after it, only what that cannot run."""
        if self.whole:
            self._ctest("dev", only="allocation_test")
        else:
            self._ctest("dev")

    def sanitize(self) -> None:
        """Run the C++ tests under each sanitizer, and the extension module under one."""
        self._each(self._ctest, ["asan", "tsan"])
        check_extension(self.environment(self.main_version))

    def memcheck(self) -> None:
        """Run the hot path under Valgrind."""
        python = self._installed(self.main_version)
        self._build_dev()
        run_memcheck(python)

    def soak(self) -> None:
        """Execute and compile many times, and measure memory."""
        python = self._installed(self.main_version)
        self._build_dev()
        run_soak(python, full=self.full)

    def _build_dev(self) -> None:
        with step("building the soak"):
            configure("dev", self.environment(self.main_version))
            build = ["cmake", "--build", "--preset", "dev", "--parallel", "2"]
            run([*build, "--target", *_SOAK_TARGETS])

    def pytest(self) -> None:
        """Install cyxla for each interpreter and run the Python tests there."""
        self._each(self._pytest, self.pythons)

    def matrix(self) -> None:
        """Run the newest JAX with every plugin; the Python tests do it for their own JAX."""
        newest, version = [*ROWS.items()][-1]
        if version not in self.pythons:
            say(f"==> no Python {version}, so nothing is tested with JAX {newest}")
            return
        command: list[str | Path] = [sys.executable, "tools/matrix.py", "--brief", newest]
        self._run_runner(f"matrix, JAX {newest}:", f"| {newest} |", command)

    def targets(self) -> None:
        """Run programs of the table as libraries for other machines; one interpreter."""
        self._other_tests("targets", "--numprocesses=2")

    def wheels(self) -> None:
        """Download JAX's plugins for GPUs and TPUs and test with them; one interpreter."""
        self._other_tests("wheels")

    def _other_tests(self, folder: str, *options: str) -> None:
        version = self.suite_version
        command = self._pytest_command(self._installed(version), folder, *options)
        with step(f"tests of {folder} on {version}"):
            self._run_runner(f"{folder}, Python {version}:", " in ", command, BUILD)

    def fuzz(self) -> None:
        """Build the fuzzers and run each, beginning with programs of the installed plugins."""
        python = self._installed(self.main_version)
        build_fuzzers(python)
        self._each(lambda fuzzer: find_planted(fuzzer, python), FUZZERS)
        self._each(lambda fuzzer: self._fuzz(fuzzer, python), FUZZERS)

    def _fuzz(self, fuzzer: str, python: Path) -> None:
        command = fuzz_command(fuzzer, python, self.fuzz_seconds)
        with step(f"fuzzing {fuzzer}"):
            self._run_runner(
                f"fuzz, {fuzzer}:", EXECUTED, command, timeout=self.fuzz_seconds + 1200
            )

    def _each(self, action: Callable[[str], None], names: Iterable[str]) -> None:
        failed = []
        for name in names:
            try:
                action(name)
            except StepError as error:
                failed.append(f"{name}: {error}")
        if failed:
            raise StepError("; ".join(failed))

    def _ctest(self, preset: str, only: str = "") -> None:
        python = self.environment(self.main_version)
        junit = BUILD / preset / "ctest.xml"
        with step(f"C++ tests, preset {preset}"):
            configure(preset, python)
            # ThreadSanitizer of g++ 12 ends at once where addresses are randomized too widely.
            fixed = _fixed_addresses() if preset == "tsan" else []
            build = [*fixed, "cmake", "--build", "--preset", preset, "--parallel", "2"]
            run([*build, "--target", only, *_SOAK_TARGETS] if only else build)
            command: list[str | Path] = [
                *fixed,
                "ctest",
                "--preset",
                preset,
                "--output-junit",
                junit,
                *(["--tests-regex", f"^{only}[.]"] if only else []),
            ]
            self._run_runner(f"ctest, preset {preset}:", " tests passed", command)
            run([python, "tools/check_skips.py", junit])

    def _installed(self, version: str) -> Path:
        """Return the interpreter of the environment of a version, with cyxla in it."""
        python = self.environment(version)
        install_wheel(version, python, from_sdist=self.whole and version == self.main_version)
        return python

    def _pytest(self, version: str) -> None:
        python = self._installed(version)
        # An empty folder: nothing of the source tree is importable from it.
        folder = BUILD / f"pytest-{version}"
        folder.mkdir(parents=True, exist_ok=True)
        options = ["-m", self._selection(version)] if self.whole else []
        # The tests of a file stay together: they share what its fixtures made.
        options += ["--numprocesses=2", "--dist=loadfile"]
        command = self._pytest_command(python, "python", *options)
        variables = {
            "CYXLA_REQUIRE_INSTALLED": str(environment_folder(version)),
            "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }
        with step(f"Python tests on {version}"):
            self._run_runner(f"pytest, Python {version}:", " in ", command, folder, variables)

    def _selection(self, version: str) -> str:
        """Return the marks of the tests to run on a version, one of several."""
        if version == self.suite_version:
            return "not checks"
        if version == self.main_version:
            return "checks or ((interpreter or jax) and not plugins)"
        return "interpreter and not plugins and not checks"

    def _pytest_command(self, python: Path, tests: str, *options: str) -> list[str | Path]:
        """Return the command that runs a folder of tests."""
        command: list[str | Path] = [python, "-m", "pytest", "-c", ROOT / "pyproject.toml"]
        command += [f"--rootdir={ROOT}", "-p", "no:cacheprovider", *options]
        return [*command, ROOT / "tests" / tests, *self.pytest_arguments]

    def _run_runner(
        self,
        title: str,
        mark: str,
        command: Sequence[str | Path],
        folder: Path = ROOT,
        variables: Mapping[str, str] | None = None,
        timeout: float = 3000,
    ) -> None:
        lines: list[str] = []
        try:
            lines = run(command, cwd=folder, env=variables, timeout=timeout)
        except StepError as error:
            lines = error.lines
            raise
        finally:
            self.closing_lines += [title, *closing_lines(lines, mark)]


def main() -> int:
    """Run the parts named, all without a name; return 1 when one of them failed."""
    parser = argparse.ArgumentParser(description="Runs the tests, all of them or a part.")
    parser.add_argument("part", nargs="?", choices=[*ALL_PARTS, "format", "targets", "wheels"])
    parser.add_argument("--version", default="", help="one Python version, such as 3.12")
    parser.add_argument("--seconds", type=int, default=0, help="for each fuzzer")
    parser.add_argument("--full", action="store_true", help="the whole soak")
    parser.epilog = "What follows -- is passed to pytest."
    own, pytest_arguments = sys.argv[1:], []
    if "--" in own:
        split = own.index("--")
        own, pytest_arguments = own[:split], own[split + 1 :]
    arguments = parser.parse_args(own)

    failures = []
    search = find_pythons()
    missing = [version for version in VERSIONS if version not in search.found]
    for version, interpreter in search.found.items():
        say(f"Python {version}: {interpreter}")
    for version in missing:
        say(f"Python {version}: NOT FOUND; name one in CYXLA_TEST_PYTHONS to test on it")
    if missing:
        for line in search.rejected:
            say(f"  passed over {line}")
        if os.environ.get("CI") == "true":
            failures.append(f"CI needs Python {', '.join(missing)} too")
    pythons = search.found
    if arguments.version:
        pythons = {v: path for v, path in search.found.items() if v == arguments.version}
    if not pythons:
        say(f"error: no usable Python {arguments.version or ', '.join(VERSIONS)}")
        return 1

    session = Session(
        pythons,
        pytest_arguments,
        fuzz_seconds=arguments.seconds,
        full=arguments.full,
        whole=arguments.part is None,
    )
    start = time.monotonic()
    if arguments.part:
        session.run_parts([arguments.part])
    else:
        session.run_parts(PARTS)
        session.run_lanes()
    failures += session.failures
    for failure in failures:
        say(f"error: {failure}")
    for line in session.closing_lines:
        say(line)
    spent = ", ".join(f"{part} {seconds:.0f}" for part, seconds in session.seconds.items())
    say(f"seconds: {spent}; {time.monotonic() - start:.0f} from start to end")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
