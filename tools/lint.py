# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of the source text, each by its name, or all of them.

    build/venv-3.11/bin/python tools/lint.py                # all
    build/venv-3.11/bin/python tools/lint.py ruff mypy      # two of them
    build/venv-3.11/bin/python tools/lint.py --format       # rewrites the files instead

It needs an environment that has ruff and mypy, and clang-format, clang-tidy, cppcheck on PATH.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from steps import BUILD, ROOT, StepError, configure, run, say, step

_PYTHON = sys.executable
_CPP_FOLDERS = ("include", "src", "tests", "examples", "benchmarks", "python")


def _cpp_files() -> list[Path]:
    return sorted(
        path.relative_to(ROOT)
        for folder in _CPP_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".h", ".hpp", ".c", ".cpp"}
    )


def check_layers() -> None:
    """Includes and imports point one way; sizes of files; licence lines."""
    run([_PYTHON, "tools/check_layers.py"])


def check_clang_format() -> None:
    """C and C++ are formatted as .clang-format says."""
    run(["clang-format", "--dry-run", "--Werror", *_cpp_files()])


def check_ruff_format() -> None:
    """Python is formatted as ruff does it."""
    run([_PYTHON, "-m", "ruff", "format", "--check", "."])


def check_ruff() -> None:
    """No finding of ruff's linter."""
    run([_PYTHON, "-m", "ruff", "check", "."])


def check_mypy() -> None:
    """The annotations hold under mypy --strict."""
    run([_PYTHON, "-m", "mypy", "--cache-dir", BUILD / "mypy-cache"])


def check_clang_tidy(target: str = "all") -> None:
    """No finding of clang-tidy in src/ and include/; only what has changed is looked at again."""
    configure("tidy", _PYTHON)
    command = ["cmake", "--build", "--preset", "tidy", "--parallel", "2", "--target", target]
    run([*command, "--", "-k", "0"])  # every finding, not only the first


def check_cppcheck() -> None:
    """No finding of cppcheck in src/ and include/."""
    cache = BUILD / "cppcheck"
    cache.mkdir(parents=True, exist_ok=True)
    command = [
        "cppcheck",
        "--enable=warning,performance,portability",
        "--error-exitcode=1",
        "--quiet",
    ]
    command += ["--std=c++20", "--language=c++", "--inline-suppr", f"--cppcheck-build-dir={cache}"]
    run([*command, "-j2", "-Iinclude", "-Isrc", "src", "include"])


def rewrite() -> None:
    """Format C, C++ and Python files in place, and fix what ruff can fix."""
    run(["clang-format", "-i", *_cpp_files()])
    run([_PYTHON, "-m", "ruff", "check", "--fix-only", "."])
    run([_PYTHON, "-m", "ruff", "format", "."])


CHECKS: dict[str, Callable[[], None]] = {
    "layers": check_layers,
    "clang-format": check_clang_format,
    "ruff-format": check_ruff_format,
    "ruff": check_ruff,
    "mypy": check_mypy,
    "cppcheck": check_cppcheck,
    "clang-tidy": check_clang_tidy,
}


def main() -> int:
    """Run the checks named, all without names; return 1 when one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checks", nargs="*", metavar="check", help=", ".join(CHECKS))
    parser.add_argument("--format", action="store_true", help="rewrite the files instead")
    parser.add_argument("--target", default="all", help="CMake target for clang-tidy")
    arguments = parser.parse_args()
    if unknown := set(arguments.checks) - set(CHECKS):
        parser.error(f"unknown check {', '.join(sorted(unknown))}; known are {', '.join(CHECKS)}")
    if arguments.format:
        rewrite()
        return 0
    failed = []
    for name in arguments.checks or CHECKS:
        try:
            with step(f"check {name}"):
                if name == "clang-tidy":
                    check_clang_tidy(arguments.target)
                else:
                    CHECKS[name]()
        except StepError as error:
            failed.append(f"{name}: {error}")
    for line in failed:
        say(f"error: check {line}; 'make format' repairs formatting")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
