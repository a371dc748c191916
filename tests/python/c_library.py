# SPDX-License-Identifier: Apache-2.0
"""Compiles small shared libraries: invalid plugins and FFI handlers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def build_library(library: Path, source: str, *includes: str) -> Path:
    """Compile C source to a shared library and return its path."""
    compiler = shutil.which("cc")
    assert compiler is not None, "a C compiler is needed to build cyxla, and to test it"
    options = ["-std=c11", "-x", "c", "-shared", "-fPIC", *(f"-I{folder}" for folder in includes)]
    subprocess.run(
        [compiler, *options, "-o", str(library), "-"],
        input=source,
        text=True,
        timeout=100,
        check=True,
    )
    return library
