# SPDX-License-Identifier: Apache-2.0
"""`python -m cyxla build`, which builds a C library of saved programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cyxla.errors import Error
from cyxla.library.build import Library, build_library
from cyxla.program.program import Program

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        library = build_library(
            [Program.load(path) for path in given.programs],
            given.output,
            name=given.name,
            target=given.target,
            cpu=given.cpu,
            exact=not given.inexact,
            flush_subnormals=given.flush_subnormals,
            optional=given.optional,
            extras=given.extra,
            linker=given.linker,
        )
    except (Error, OSError) as error:
        print(f"python -m cyxla build: {error}", file=sys.stderr)
        return 1
    _describe(library)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cyxla build",
        description="Build a C library of programs that Program.save wrote. Needs llvmlite and a"
        " CPU plugin, but not JAX.",
    )
    parser.add_argument("programs", nargs="+", type=Path, metavar="FILE.cyxla")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, help="a .o, .a, .so, .dll or .wasm file"
    )
    parser.add_argument("--name", help="what the functions' names begin with")
    parser.add_argument("--target", metavar="TRIPLE", help="such as aarch64-linux-gnu")
    parser.add_argument("--cpu", help="LLVM's name of a processor, or 'native'")
    parser.add_argument(
        "--inexact", action="store_true", help="also build small matrix products (exact=False)"
    )
    parser.add_argument(
        "--flush-subnormals", action="store_true", help="treat subnormal numbers as zero"
    )
    parser.add_argument(
        "--optional",
        action="append",
        default=[],
        metavar="OUTPUT",
        help="an output for which callers may pass NULL; repeatable",
    )
    parser.add_argument(
        "--extra",
        action="append",
        default=[],
        choices=["fortran", "pkg-config", "cmake"],
        help="a further file beside the library; repeatable",
    )
    parser.add_argument("--linker", help="the program that links .so, .dll and .wasm")
    return parser


def _describe(library: Library) -> None:
    print(f"{library.path}: {library.size_bytes} bytes; header {library.header}")
    for function in library.functions.values():
        parameters = [each.name for each in (*function.inputs, *function.outputs)]
        parameters += ["workspace"] if function.workspace_bytes else []
        print(f"  {function.name}({', '.join(parameters)}): equal in {function.num_trials} trials")
    print(f"  needs: {', '.join(library.undefined_symbols) or 'nothing'}")
