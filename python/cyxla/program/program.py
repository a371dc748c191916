# SPDX-License-Identifier: Apache-2.0
"""A lowered JAX function: StableHLO and the signature that native code must follow."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from cyxla.errors import counted, refuse_reload
from cyxla.program.file import load_program, save_program
from cyxla.program.host_callbacks import HostCallbacks
from cyxla.program.signature import ProgramArray

__all__ = ["Program"]

refuse_reload(__name__, "Program" in globals())


class _Flops:
    """`Program.flops`: counted on first use, as that takes as long as lowering the function."""

    def __get__(self, program: Program | None, owner: type[Program]) -> Any:
        if program is None:
            return None  # the default of the field
        value = program.__dict__["_flops"]
        if callable(value):
            value = program.__dict__["_flops"] = value()
        return value

    def __set__(self, program: Program, value: float | Callable[[], float | None] | None) -> None:
        program.__dict__["_flops"] = value


@dataclasses.dataclass(frozen=True, repr=False)
class Program:
    """A JAX function lowered for one platform; made by `cyxla.lower`, immutable, picklable.

    Printing a program shows its signature as a table. `save` and `load` keep it in a file. One that
    needs Python holds functions of this process and can be neither pickled nor saved.

    Attributes:
        name: the function's name, or the one given to `lower`.
        platform: JAX's lowering platform: "cpu", "cuda", "rocm", "tpu".
        inputs: every declared leaf in flatten order, used or not.
        outputs: every leaf of the result in flatten order.
        stablehlo: portable StableHLO artifact (MLIR bytecode) of version `stablehlo_version`.
        stablehlo_version: such as "1.17.0"; the version of the JAX that lowered the function, or
            of the artifact that was saved.
        text: the same module as MLIR text, without source locations.
        custom_call_targets: names that the plugin, or a registered FFI handler, must provide.
        needs_python: whether an execution calls back into Python, for which it takes the GIL.
        jax_version: version of the JAX that lowered the function.
        flops: floating-point operations of one execution by XLA's cost analysis, which counts a
            loop's body once and custom calls not at all; None where it does not say. Counted when
            it is first read, pickled or saved.
        host_callbacks: keeps the Python functions that an execution calls; None without any.
    """

    name: str
    platform: str
    inputs: tuple[ProgramArray, ...]
    outputs: tuple[ProgramArray, ...]
    stablehlo: bytes
    stablehlo_version: str
    text: str
    custom_call_targets: tuple[str, ...]
    needs_python: bool
    jax_version: str
    flops: float | None = _Flops()  # type: ignore[assignment]
    host_callbacks: HostCallbacks | None = dataclasses.field(default=None, compare=False)

    def __repr__(self) -> str:
        inputs, outputs = counted(len(self.inputs), "input"), counted(len(self.outputs), "output")
        return (
            f"<cyxla.Program {self.name!r} for {self.platform}: {inputs}, {outputs},"
            f" {len(self.stablehlo)} bytes of StableHLO {self.stablehlo_version}>"
        )

    def __str__(self) -> str:
        return self.describe()

    def __getstate__(self) -> dict[str, Any]:
        self.flops  # noqa: B018  # the process that reads this may have no jax to count them
        return self.__dict__

    def check_portable(self) -> None:
        """Raise UnsupportedError when the program cannot leave this process."""
        if self.host_callbacks is not None:
            self.host_callbacks.refuse_to_leave()

    def save(self, path: str | os.PathLike[str], *, stablehlo_version: str | None = None) -> None:
        """Write the program to a file, which `load` reads; a file that was there is replaced.

        The file appears whole or not at all, with the permissions of the one that was there.
        `docs/program-file.md` describes its format.

        Args:
            path: the file, in a folder that exists.
            stablehlo_version: the StableHLO version of the plugin that will read the artifact,
                such as "1.13.3" (`RuntimeInfo.stablehlo_version`); writing for an older version
                than the program's needs jax. None takes that of the plugin which this process has
                loaded, where the program can be written so, and the program's own otherwise: no
                plugin is loaded to ask it. The text beside the artifact has no version.

        Raises:
            UnsupportedError: the program calls back into Python, or cannot be written as
                `stablehlo_version`.
            ArgumentError: `stablehlo_version` is no version, or `path` no path.
            OSError: the file cannot be written, or what is there is no file: a folder, a device.
        """
        save_program(self, path, stablehlo_version)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Read a program that `save` wrote. Needs neither jax nor a plugin.

        Raises:
            ArgumentError: the file is damaged, cut off, of a newer cyxla, or no program; it is a
                device or pipe; `path` is no path.
            OSError: the file cannot be read.
        """
        return load_program(cls, path)

    def describe(self) -> str:
        """The signature as a table: what native code needs to fill `Input` and its outputs."""
        header = ("", "index", "name", "dtype", "element type", "shape", "elements", "bytes")
        rows = [header]
        for side, arrays in (("input", self.inputs), ("output", self.outputs)):
            for index, array in enumerate(arrays):
                element_type = f"{array.element_type.name} = {array.element_type.value}"
                shape = "x".join(map(str, array.shape)) or "scalar"
                elements, size_bytes = str(array.array_type.size), str(array.size_bytes)
                row = (side, str(index), array.name, array.dtype.name, element_type, shape)
                rows.append((*row, elements, size_bytes))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        title = (
            f"{self.name} for {self.platform}, StableHLO {self.stablehlo_version},"
            f" JAX {self.jax_version}"
        )
        targets = ", ".join(self.custom_call_targets)
        return "\n".join([title, *lines, *([f"custom calls: {targets}"] if targets else [])])
