# SPDX-License-Identifier: Apache-2.0
"""Every program of the table that is called directly can be built, and gives the plugin's numbers.

`build_library` compares each function with the plugin's on 256 sets of inputs; here is what it may
refuse, and which kernels may have to be compiled by themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import cyxla
from support.programs.check import arguments_of, lowered
from support.programs.table import select

PROGRAMS = select("direct")
# Conversions of numbers that are out of an integer's range, which LLVM may make anything of once a
# kernel is inlined.
MAY_BE_APART = {"casts of float64", "casts of float32"}
# The processor decides whether XLA uses such an instruction.
OWN_INSTRUCTION = "an instruction of this machine's processor"


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::cyxla.LargeConstantsWarning")
def test_a_direct_program_can_be_built(name: str, tmp_path: Path) -> None:
    program = lowered(PROGRAMS[name], arguments_of(name, PROGRAMS[name]))
    refusal = ""
    try:
        library = cyxla.build_library({"f": program}, tmp_path / "f.o")
    except cyxla.LibraryError as error:
        refusal = str(error)
    if refusal:
        assert list(tmp_path.iterdir()) == []
        if OWN_INSTRUCTION not in refusal:
            executable = cyxla.compile_program(program, exact=True).executable
            assert executable.route == "pjrt", refusal
            assert executable.route_reason in refusal
        return
    function = library.functions["f"]
    assert function.num_trials >= 32
    assert not function.kernels_apart or name in MAY_BE_APART
