# SPDX-License-Identifier: Apache-2.0
"""Compares the direct route with the plugin's, bit by bit, for the programs of the table.

Runs as a script, because a process loads only one plugin. It prints a JSON object for each program,
and before that its name, which shows where a process ended early.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import cyxla
from cyxla import _runtime
from direct_calls import NativeProgram
from serialized_steps import step_kinds
from support.arrays import Array
from support.programs.check import lowered
from support.programs.entry import Program
from support.programs.table import select
from support.programs.values import SORTS, values

_LIBM = ctypes.CDLL("libm.so.6")
_ALIGNMENT = 64
_GUARD = 64
_FILLER, _GUARD_BYTE, _OTHER_FILLER = 0x5A, 0xC3, 0xA5
_MOST_FAILURES = 3


class Placement(NamedTuple):
    """The addresses of arrays: aligned, or one itemsize further if `shifted`.

    With `outputs_at` the outputs overlap the inputs, from that many bytes after the first one.
    """

    shifted: bool = False
    outputs_at: int | None = None
    drops: int | None = None  # drops the outputs whose index has this remainder modulo two
    rounding: int = 0  # the caller's mode, a constant of <fenv.h> on x86-64; 0 is to nearest


PLACEMENTS = {
    "aligned": Placement(),
    "misaligned": Placement(shifted=True),
    "outputs over the inputs": Placement(outputs_at=0),
    "outputs over the inputs, behind": Placement(outputs_at=64),
    "outputs over the inputs, misaligned": Placement(outputs_at=8),
    "outputs over misaligned inputs": Placement(shifted=True, outputs_at=0),
    "first output dropped": Placement(drops=0),
    "second output dropped": Placement(drops=1),
    "the caller rounds upward": Placement(rounding=0x800),
}


class Region:
    """Memory for consecutive arrays."""

    def __init__(self, size_bytes: int) -> None:
        self.raw = np.empty(size_bytes + _ALIGNMENT, np.uint8)
        start = -self.raw.ctypes.data % _ALIGNMENT
        self.bytes = self.raw[start : start + size_bytes]

    def view(self, offset: int, size_bytes: int) -> Array:
        return self.bytes[offset : offset + size_bytes]


def offsets(types: Sequence[Any], start: int, shifted: bool, guard: int) -> tuple[list[int], int]:
    """The offset of each array, and the end of the last."""
    result = []
    for type_ in types:
        start += guard
        result.append(start + (type_.dtype.itemsize if shifted else 0))
        start += -(-(type_.size_bytes + type_.dtype.itemsize) // _ALIGNMENT) * _ALIGNMENT
    return result, start + 2 * _ALIGNMENT


def addresses(views: Sequence[Array]) -> list[int]:
    return [view.ctypes.data for view in views]


def run_reference(executable: cyxla.Executable, inputs: Sequence[Array]) -> list[bytes]:
    """The plugin's outputs."""
    out = []
    for type_ in executable.output_types:
        array = cyxla.aligned_empty(type_.shape, type_.dtype)
        array.reshape(-1).view(np.uint8).fill(_OTHER_FILLER)
        out.append(array)
    return [array.tobytes() for array in executable.run(inputs, out=out)]


def run_direct(
    program: NativeProgram,
    executable: cyxla.Executable,
    inputs: Sequence[Array],
    placement: Placement,
) -> tuple[list[bytes | None], list[str]]:
    """The outputs of a direct call, and the faults of its writes to other memory."""
    overlaps = placement.outputs_at is not None
    # With guards an output could overlap no input.
    guard = 0 if overlaps else _GUARD
    input_offsets, input_end = offsets(executable.input_types, 0, placement.shifted, guard)
    start = placement.outputs_at or 0
    shifted = placement.shifted and not overlaps
    output_offsets, output_end = offsets(executable.output_types, start, shifted, guard)
    region = Region(max(input_end, output_end) if overlaps else input_end)
    output_region = region if overlaps else Region(output_end)
    output_region.bytes.fill(_GUARD_BYTE)

    sources, targets = [], []
    for offset, type_ in zip(output_offsets, executable.output_types, strict=True):
        targets.append(output_region.view(offset, type_.size_bytes))
        targets[-1].fill(_FILLER)
    for offset, array in zip(input_offsets, inputs, strict=True):
        sources.append(region.view(offset, array.nbytes))
        sources[-1][:] = np.frombuffer(array.tobytes(), np.uint8)
    dropped = {i for i in range(len(targets)) if i % 2 == placement.drops}
    from_addresses = addresses(sources)
    to_addresses = [None if i in dropped else a for i, a in enumerate(addresses(targets))]
    _LIBM.fesetround(placement.rounding)
    program.execute(from_addresses, to_addresses, zero_copy=not overlaps)
    rounding_after = _LIBM.fegetround()
    _LIBM.fesetround(0)
    outputs = [None if i in dropped else target.tobytes() for i, target in enumerate(targets)]
    if overlaps:
        return outputs, []

    faults = []
    if rounding_after != placement.rounding:
        faults.append(f"the rounding mode is {rounding_after:#x} after the call")
    for i, target in enumerate(targets):
        if i in dropped and (target != _FILLER).any():
            faults.append(f"dropped output {i} was written")
        target.fill(_GUARD_BYTE)
    if (output_region.bytes != _GUARD_BYTE).any():
        faults.append("memory beside the outputs was written")
    for i, (source, array) in enumerate(zip(sources, inputs, strict=True)):
        if source.tobytes() != array.tobytes():
            faults.append(f"input {i} was written")
    return outputs, faults


def differences(found: Sequence[bytes | None], wanted: Sequence[bytes]) -> Iterator[str]:
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a is None or a == b:
            continue
        offset = next(k for k in range(len(b)) if a[k] != b[k]) // 8 * 8
        yield (
            f"output {i}: bytes {a[offset : offset + 8].hex()} instead of"
            f" {b[offset : offset + 8].hex()} at offset {offset} of {len(b)}"
        )


def input_sets(program: Program, executable: cyxla.Executable) -> Iterator[tuple[str, Any]]:
    """The sets of inputs to compare with, each with a name."""
    for sort, seeds in SORTS.items():
        for seed in seeds:
            rng = np.random.default_rng(seed)
            if "converges" in program.tags:
                yield f"numbers of its own {seed}", jax.tree.leaves(program.arguments(rng))
                continue
            types = executable.input_types
            yield f"{sort} {seed}", [values(sort, rng, t.shape, t.dtype) for t in types]


def compare(program: Program, direct: cyxla.Executable, reference: cyxla.Executable) -> list[str]:
    """Describe the first differences between the routes."""
    native = NativeProgram(direct)
    failures: list[str] = []
    for name, inputs in input_sets(program, direct):
        wanted = run_reference(reference, inputs)
        for where, placement in PLACEMENTS.items():
            found, faults = run_direct(native, direct, inputs, placement)
            faults += differences(found, wanted)
            failures += [f"{name}, {where}: {fault}" for fault in faults]
        bound = direct.bind([np.array(array, order="C") for array in inputs])
        for how, outputs in (("run", direct.run(inputs)), ("bind", bound())):
            faults = differences([output.tobytes() for output in outputs], wanted)
            failures += [f"{name}, {how}: {fault}" for fault in faults]
        if len(failures) >= _MOST_FAILURES:
            break
    if np.float64(5e-324) * np.float64(1) == 0:
        failures.append("subnormal numbers are flushed to zero after the calls")
    return failures[:_MOST_FAILURES]


def report(program: Program) -> dict[str, Any]:
    """The result of a program with the loaded plugin."""
    start = time.monotonic()
    source = lowered(program, program.arguments(np.random.default_rng(0)))
    try:
        executable, _ = cyxla.compile_program(source, route="auto", exact=True)
    except cyxla.CompileError as error:
        return {"route": "none", "reason": str(error)}
    result: dict[str, Any] = {
        "route": executable.route,
        "reason": executable.route_reason,
        "kinds": sorted(step_kinds(_runtime.serialize(executable))),
        "failures": [],
    }
    if executable.route == "direct":
        reference, _ = cyxla.compile_program(source, route="pjrt")
        result["failures"] = compare(program, executable, reference)
        if reference.route != "pjrt":
            result["failures"].append(f"{reference.route}, not pjrt")
    result["seconds"] = time.monotonic() - start
    return result


def main() -> None:
    # Keep NumPy's warnings off stderr.
    np.seterr(all="ignore")
    for name, program in select("direct").items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        print(json.dumps({"name": name}), flush=True)
        print(json.dumps(report(program)), flush=True)


if __name__ == "__main__":
    main()
