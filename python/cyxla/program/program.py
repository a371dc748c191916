# SPDX-License-Identifier: Apache-2.0
"""A lowered JAX function: its StableHLO, and its signature for native code."""

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
    """`Program.flops`, computed on first use: counting takes as long as lowering the function."""

    def __get__(self, program: Program | None, owner: type[Program]) -> Any:
        if program is None:
            return None  # dataclass reads the field's default here
        value = program.__dict__["_flops"]
        if callable(value):
            value = program.__dict__["_flops"] = value()
        return value

    def __set__(self, program: Program, value: float | Callable[[], float | None] | None) -> None:
        program.__dict__["_flops"] = value


@dataclasses.dataclass(frozen=True, repr=False)
class Program:
    """A JAX function lowered for one platform, from `cyxla.lower`; immutable and picklable.

    Printing a program shows its signature as a table. `save` writes it to a file that `load` reads.
    A program that calls Python functions can be neither pickled nor saved.

    Attributes:
        name: the function's name, or the one given to `lower`.
        platform: JAX's lowering platform: "cpu", "cuda", "rocm", "tpu".
        inputs: every declared leaf in flatten order, used or not.
        outputs: every leaf of the result in flatten order.
        stablehlo: portable StableHLO artifact (MLIR bytecode) of version `stablehlo_version`.
        stablehlo_version: version of the artifact, such as "1.17.0"; that of the JAX that lowered
            the function, unless `save` wrote an older one.
        text: the same module as MLIR text, without source locations.
        custom_call_targets: custom calls that the plugin or a registered FFI handler must provide.
        needs_python: whether an execution takes the GIL to call Python functions.
        jax_version: version of the JAX that lowered the function.
        flops: floating-point operations of one execution according to XLA's cost analysis, which
            counts a loop's body once and ignores custom calls; None if unknown. Computed when it is
            first read, pickled or saved.
        host_callbacks: owns the Python functions that an execution calls; None without any.
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
        self.flops  # noqa: B018  # counts them now: the reading process may not have jax
        return self.__dict__

    def check_portable(self) -> None:
        """Raise UnsupportedError if the program calls functions of this process."""
        if self.host_callbacks is not None:
            self.host_callbacks.refuse_to_leave()

    def save(self, path: str | os.PathLike[str], *, stablehlo_version: str | None = None) -> None:
        """Write the program to a file that `load` reads, replacing an existing file.

        The file is replaced atomically and keeps its permissions. `docs/program-file.md` describes
        its format.

        Args:
            path: the file, in an existing folder.
            stablehlo_version: the StableHLO version of the plugin that will read the artifact,
                such as "1.13.3" (`RuntimeInfo.stablehlo_version`). Writing an older version than
                the program's needs jax. None means the version of the plugin that this process has
                loaded, or the program's own if none is loaded or the program cannot be written for
                the plugin's. The text in the file does not depend on it.

        Raises:
            UnsupportedError: the program calls back into Python, or cannot be written as
                `stablehlo_version`.
            ArgumentError: `stablehlo_version` is not a version, or `path` is not a path.
            OSError: the file cannot be written, or the path is a folder or a device.
        """
        save_program(self, path, stablehlo_version)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Return a program that `save` wrote. Needs neither jax nor a plugin.

        Raises:
            ArgumentError: the file is damaged, truncated, from a newer cyxla, or not a program
                file; it is a device or pipe; `path` is not a path.
            OSError: the file cannot be read.
        """
        return load_program(cls, path)

    def describe(self) -> str:
        """Return the signature as a table, with what native code needs for inputs and outputs."""
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
