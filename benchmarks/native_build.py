# SPDX-License-Identifier: Apache-2.0
"""Compiles the native rivals with the machine's compiler, once per source text, and loads them."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import cyxla

ROOT = Path(__file__).resolve().parent
_BUILD = ROOT.parent / "build" / "benchmarks"
C_COMPILER = os.environ.get("CC", "gcc")
CXX_COMPILER = os.environ.get("CXX", "g++")
OPTIMIZATION = ("-O3", "-march=native")


def build_library(source: Path, *flags: str) -> Path:
    """Compile one C or C++ file into a shared library, unless one of the same text exists.

    Raises RuntimeError with the compiler's messages.
    """
    compiler = [C_COMPILER, "-std=c11"] if source.suffix == ".c" else [CXX_COMPILER, "-std=c++20"]
    include = f"-I{cyxla.get_include()[0]}"
    command = [*compiler, *OPTIMIZATION, "-fPIC", "-shared", include, *flags]
    key = hashlib.sha256("\0".join([*command, _cpu()]).encode() + source.read_bytes()).hexdigest()
    library = _BUILD / f"{source.stem}-{key[:16]}.so"
    if not library.exists():
        _BUILD.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_suffix(f".{os.getpid()}")
        run_tool([*command, str(source), "-o", str(unfinished), "-lpthread", "-ldl", "-lm"])
        unfinished.replace(library)
    return library


def load_library(source: Path, *flags: str) -> ctypes.CDLL:
    """Compile one C or C++ file and load it; its functions are called without the GIL."""
    return ctypes.CDLL(str(build_library(source, *flags)))


def generated_source(name: str, text: str) -> Path:
    """Write a source file with this text into the build folder."""
    folder = _BUILD / hashlib.sha256(text.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def run_tool(command: Sequence[str]) -> None:
    """Run a compiler. Raises RuntimeError with its output when it fails."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if ended.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {ended.stderr.strip()[-2000:]}")


def address_of(function: object) -> int:
    """The address of a ctypes function."""
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert address is not None
    return address


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("flags")), "")
