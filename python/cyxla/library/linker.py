# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the linker of a target, for shared libraries and WebAssembly modules."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cyxla.errors import LibraryError

_SECONDS: Final = 300


class _Linker(NamedTuple):
    """The names of a target's linker, the Debian package that has it, and whether it is wasm-ld."""

    names: tuple[str, ...]
    package: str
    is_wasm: bool = False


_WASM: Final = _Linker(("wasm-ld", "wasm-ld-14"), "lld", is_wasm=True)
# By the architecture and the end of the triple.
_CROSS: Final = {
    ("aarch64", "gnu"): _Linker(("aarch64-linux-gnu-gcc",), "gcc-aarch64-linux-gnu"),
    ("riscv64", "gnu"): _Linker(("riscv64-linux-gnu-gcc",), "gcc-riscv64-linux-gnu"),
    ("armv7", "gnueabihf"): _Linker(("arm-linux-gnueabihf-gcc",), "gcc-arm-linux-gnueabihf"),
    ("x86_64", "gnu"): _Linker(("x86_64-linux-gnu-gcc", "cc"), "gcc"),
    ("x86_64", "windows-gnu"): _Linker(("x86_64-w64-mingw32-gcc",), "gcc-mingw-w64-x86-64"),
}


def link_shared(
    code: bytes, file_name: str, triple: str, exported: Sequence[str], linker: str | None
) -> bytes:
    """Link an object file, and return the shared library or the WebAssembly module.

    Raises LibraryError when the target's linker is missing or fails.
    """
    found = _find(triple, linker)
    with tempfile.TemporaryDirectory(prefix="cyxla-") as folder:
        source, target = Path(folder, "cyxla.o"), Path(folder, file_name)
        source.write_bytes(code)
        if found.is_wasm:
            options = ["--no-entry", "--allow-undefined", *(f"--export={s}" for s in exported)]
            command = [*found.names, *options, "-o", str(target), str(source)]
        else:
            command = [*found.names, "-shared", "-o", str(target), str(source), "-lm"]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if ended.returncode != 0:
            raise LibraryError(f"{' '.join(command)} failed: {ended.stderr.strip()}")
        return target.read_bytes()


def _find(triple: str, linker: str | None) -> _Linker:
    known = _known(triple)
    if linker is not None:
        path = shutil.which(linker)
        if path is None:
            raise LibraryError(f"linker {linker!r} is not on PATH")
        return known._replace(names=(path,))
    for name in known.names:
        if (path := shutil.which(name)) is not None:
            return known._replace(names=(path,))
    advice = f"; install it with 'apt install {known.package}'" if known.package else ""
    wanted = " or ".join(known.names) or "a linker"
    raise LibraryError(
        f"linking for {triple} needs {wanted}, which is not on PATH{advice}, name another with"
        " linker=, or build a .a or .o, which needs none"
    )


def _known(triple: str) -> _Linker:
    architecture, _, rest = triple.partition("-")
    if architecture.startswith("wasm"):
        return _WASM
    for (known, end), linker in _CROSS.items():
        if architecture == known and rest.endswith(end) and ("windows" in rest) == ("win" in end):
            return linker
    return _Linker((), "")
