# SPDX-License-Identifier: Apache-2.0
"""Machines that libraries are built for, and the emulators that run them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cyxla

_RUNNER = Path(__file__).with_name("library_runner.c")


class Target(NamedTuple):
    """A machine: its triple, the compiler and the emulator."""

    triple: str
    compiler: str
    emulator: str


TARGETS = (
    Target("aarch64-linux-gnu", "aarch64-linux-gnu-gcc", "qemu-aarch64"),
    Target("riscv64-linux-gnu", "riscv64-linux-gnu-gcc", "qemu-riscv64"),
    Target("armv7-unknown-linux-gnueabihf", "arm-linux-gnueabihf-gcc", "qemu-arm"),
    Target("x86_64-linux-gnu", "cc", "env"),
)


class Runner:
    """A library with a program that calls its functions on the target."""

    def __init__(self, target: Target, programs: Mapping[str, cyxla.Program], folder: Path) -> None:
        self.library = cyxla.build_library(programs, folder / "library.a", target=target.triple)
        self._programs = dict(programs)
        self._command = [target.emulator, str(folder / "runner")]
        functions = ", ".join(f"{name}_function()" for name in programs)
        command = [target.compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        command += ["-static", f"-DFUNCTIONS={functions}", f"-I{folder}"]
        command += [str(_RUNNER), str(self.library.path), "-lm", "-o", str(folder / "runner")]
        subprocess.run(command, check=True, timeout=100)

    def run(self, name: str, inputs: Sequence[Sequence[Any]]) -> Iterator[list[Any]]:
        """Yield the outputs for each set of inputs."""
        given = b"".join(array.tobytes() for arrays in inputs for array in arrays)
        command = [*self._command, str(list(self._programs).index(name)), str(len(inputs))]
        printed = subprocess.run(
            command, input=given, capture_output=True, timeout=100, check=True
        ).stdout
        place = 0
        for _ in inputs:
            outputs = []
            for each in self._programs[name].outputs:
                count = each.array_type.size
                array = np.frombuffer(printed, each.dtype, count, place).reshape(each.shape)
                place += array.nbytes
                outputs.append(array)
            yield outputs
        assert place == len(printed)
