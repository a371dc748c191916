# SPDX-License-Identifier: Apache-2.0
"""A third of the programs of the table as libraries for other machines, run by emulators.

`make targets` runs it. Every number has to be this machine's if the library needs nothing but
`fma`, `memcpy` and `memset` from elsewhere; otherwise the difference has to be small.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cyxla
from cyxla.library.verify import NUM_TRIALS, difference, trial_inputs
from support.programs.check import arguments_of, lowered
from support.programs.table import select
from support.targets import TARGETS, Runner, Target

NUM_SETS = 64
PROGRAMS = dict(list(select("direct").items())[::3])
EXACT = {"fma", "fmaf", "memcpy", "memset"}
# Relative to the largest value of an output, of functions of the mathematics library.
TOLERANCES = {2: 4e-3, 4: 1e-5, 8: 1e-10}


# Why a library may be refused: the last is an assertion of LLVM's code generator for 32-bit ARM.
REFUSALS = (
    "this machine's processor",
    "with the same bits",
    "the process that generates code for armv7-unknown-linux-gnueabihf ended",
)
# The compiler of Debian 12 for RISC-V has no functions for half precision.
NOT_LINKED = {("arithmetic of float16", "riscv64-linux-gnu")}
# How many trials come before the first with large numbers.
NUM_PLAIN = 4


def flushed(array: Any) -> Any:
    """The array with zero for subnormal numbers, as the plugin has it."""
    if array.dtype.kind not in "fc":
        return array
    parts = np.atleast_1d(array).copy()
    parts = parts.view(f"f{parts.itemsize // 2}") if parts.dtype.kind == "c" else parts
    parts[np.abs(parts) < np.finfo(parts.dtype).smallest_normal] *= 0
    return parts


class Case:
    """A program, and its results on this machine."""

    def __init__(self, name: str) -> None:
        self.program = lowered(PROGRAMS[name], arguments_of(name, PROGRAMS[name]))
        self.executable = cyxla.compile_program(self.program, exact=True).executable
        # No special numbers: where subnormal ones come up, these machines keep them.
        inputs = trial_inputs(self.program.inputs, has_specials=False)
        self.inputs = [arrays for arrays, _ in zip(inputs, range(NUM_SETS), strict=False)]

    def wanted(self) -> Iterator[list[Any]]:
        for arrays in self.inputs:
            yield [np.array(each) for each in self.executable.run(arrays)]


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {name: Case(name) for name in PROGRAMS}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.triple)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_this_machines(
    cases: dict[str, Case], target: Target, name: str, tmp_path: Any
) -> None:
    case = cases[name]
    if case.executable.route == "pjrt":
        pytest.skip(case.executable.route_reason)
    if (name, target.triple) in NOT_LINKED:
        with pytest.raises(subprocess.CalledProcessError):
            Runner(target, {"f": case.program}, tmp_path)
        return
    try:
        runner = Runner(target, {"f": case.program}, tmp_path)
    except cyxla.LibraryError as error:
        if not any(words in str(error) for words in REFUSALS):
            raise
        pytest.skip(str(error))
    is_exact = set(runner.library.undefined_symbols) <= EXACT
    if runner.library.functions["f"].num_trials < NUM_TRIALS:
        del case.inputs[NUM_PLAIN:]  # its loop takes long on larger numbers, or does not end
    for number, (outputs, found) in enumerate(
        zip(case.wanted(), runner.run("f", case.inputs), strict=True)
    ):
        for wanted, each in zip(map(flushed, outputs), map(flushed, found), strict=True):
            text = difference(wanted, each)
            if text and not is_exact and wanted.dtype.kind in "fc":
                largest = np.abs(np.nan_to_num(wanted, posinf=0, neginf=0)).max(initial=0)
                tolerance = TOLERANCES[min(wanted.dtype.itemsize, 8)] * float(largest)
                np.testing.assert_allclose(each, wanted, rtol=0, atol=tolerance)
            else:
                assert text == "", f"set {number}: {text}"
