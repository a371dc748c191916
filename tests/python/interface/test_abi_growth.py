# SPDX-License-Identifier: Apache-2.0
"""Modules compiled against other headers than the installed ones: which are refused, which work.

The headers are copies of the installed ones that each test changes: the version, or the members at
the end of a struct, as an older or a newer cyxla would have them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

import cyxla
from cyxla import _runtime
from support.arrays import build
from support.native import compile_module, import_module, module_file

SOURCE = Path(__file__).parents[1] / "support" / "abi_consumer.c"
VERSION = f"#define CYXLA_ABI_VERSION {_runtime.ABI_VERSION}\n"
# The ends of the two structs.
SPEC_END = "} cyxla_program_spec;\n"
API_END = "} cyxla_api;\n"
WORD = 8
FIRST_SIZES = (128, 144)  # of both in the first cyxla of ABI version 2


def compiled(folder: Path, name: str, *edits: tuple[str, str]) -> None:
    """Compile the module as `name` against headers in which each pattern is replaced, once."""
    include = folder / f"include_{name}"
    shutil.copytree(Path(cyxla.get_include()[0], "cyxla"), include / "cyxla")
    header = include / "cyxla" / "cyxla.h"
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    for pattern, replacement in edits:
        text, count = re.subn(pattern, replacement, text, flags=re.DOTALL)
        assert count == 1, pattern
    header.write_text(text)
    target = module_file(folder, name)
    compile_module(SOURCE, target, include, f"-DMODULE_INIT=PyInit_{name}")


def imported(folder: Path, name: str, *edits: tuple[str, str]) -> ModuleType:
    """Import what `compiled` makes."""
    compiled(folder, name, *edits)
    return import_module(folder, name)


def without_last(struct_end: str, num_members: int) -> tuple[str, str]:
    """The edit that cuts the last members off a struct."""
    return rf"(?:[^;]*;){{{num_members}}}\n{re.escape(struct_end)}", f"\n{struct_end}"


def with_another(struct_end: str) -> tuple[str, str]:
    """The edit that appends a member to a struct."""
    return re.escape(struct_end), f"  void* another_member;\n{struct_end}"


@pytest.fixture(scope="module")
def doubled() -> cyxla.Executable:
    """x -> 2 x, on one double."""
    return build(lambda x: 2 * x, ((), "f8"))


def test_the_installed_headers(tmp_path: Path, doubled: cyxla.Executable) -> None:
    module = imported(tmp_path, "consumer_of_the_installed")
    assert module.evaluate(doubled, 3.0) == 6.0
    api_size, spec_size = module.sizes()
    assert (api_size, spec_size) >= FIRST_SIZES


def test_a_shorter_table_and_a_shorter_spec_of_the_same_version(
    tmp_path: Path, doubled: cyxla.Executable
) -> None:
    # A module that was compiled before the last three functions and names were appended.
    module = imported(
        tmp_path, "older_consumer", without_last(SPEC_END, 3), without_last(API_END, 3)
    )
    api_size, spec_size = imported(tmp_path, "today").sizes()
    assert module.sizes() == (api_size - 3 * WORD, spec_size - 3 * WORD)
    assert module.evaluate(doubled, 3.0) == 6.0


@pytest.mark.parametrize(("struct_end", "longer"), [(API_END, (1, 0)), (SPEC_END, (0, 1))])
def test_a_longer_table_or_spec_of_the_same_version(
    tmp_path: Path, struct_end: str, longer: tuple[int, int]
) -> None:
    name = f"newer_consumer_{longer[0]}"
    own = imported(tmp_path, f"today_{longer[0]}").sizes()
    with pytest.raises(ImportError) as caught:
        imported(tmp_path, name, with_another(struct_end))
    wanted = [size + WORD * more for size, more in zip(own, longer, strict=True)]
    assert str(caught.value) == (
        f"this module was compiled for a newer cyxla of ABI version {_runtime.ABI_VERSION}"
        f" (cyxla_api of {wanted[0]} bytes, cyxla_program_spec of {wanted[1]}), the installed cyxla"
        f" has {own[0]} and {own[1]} bytes; upgrade cyxla, or rebuild the module against the"
        " installed cyxla"
    )


@pytest.mark.parametrize("version", [1, _runtime.ABI_VERSION + 1])
def test_another_version(tmp_path: Path, version: int) -> None:
    # The table of ABI version 1 ended behind itemsize(); its structs fit into those of today.
    name = f"consumer_of_abi_{version}"
    with pytest.raises(ImportError) as caught:
        imported(
            tmp_path,
            name,
            (re.escape(VERSION), f"#define CYXLA_ABI_VERSION {version}\n"),
            without_last(API_END, 3),
        )
    assert str(caught.value) == (
        f"this module was compiled for cyxla ABI version {version}, the installed cyxla has ABI"
        f" version {_runtime.ABI_VERSION}; rebuild the module against the installed cyxla"
    )
