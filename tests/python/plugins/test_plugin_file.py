# SPDX-License-Identifier: Apache-2.0
"""A file that cannot be a plugin is recognized by its bytes."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy._core._multiarray_umath as foreign_library
import pytest

from cyxla.plugins.discovery import available_plugins
from cyxla.plugins.elf_check import plugin_file_fault
from fake_packages import elf_file, own_machine

_OTHER_MACHINE = {183: (62, "x86-64")}.get(own_machine(), (183, "AArch64"))


def _fault_of(tmp_path: Path, content: bytes) -> str | None:
    path = tmp_path / "plugin.so"
    path.write_bytes(content)
    return plugin_file_fault(path)


def test_a_library_with_the_entry_function_is_accepted(tmp_path: Path) -> None:
    assert _fault_of(tmp_path, elf_file()) is None


def test_the_installed_cpu_plugins_are_accepted() -> None:
    paths = [plugin.path for plugin in available_plugins() if plugin.platform == "cpu"]
    assert len(paths) >= 3
    assert [plugin_file_fault(path) for path in paths] == [None] * len(paths)


def test_another_library_is_recognized_without_loading_it() -> None:
    fault = plugin_file_fault(Path(foreign_library.__file__))
    assert fault == "it has no function GetPjrtApi, so it is not a PJRT plugin"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "it is empty"),
        (b"MZ\x90\x00", "it is not an ELF library (it starts with b'MZ\\x90\\x00')"),
        (b"<", "it is not an ELF library (it starts with b'<')"),
        (b"\x7fELF not really", "its ELF headers are broken"),
        (elf_file(file_type=1), "it is an object file, not a shared library"),
        (elf_file(file_type=2), "it is a program, not a shared library"),
        (elf_file(file_type=4), "it is a core dump, not a shared library"),
        (elf_file(file_type=99), "it is an ELF file of type 99, not a shared library"),
        (elf_file()[:-1], "it is cut off: it has 235 bytes, its segments end at byte 236"),
        (elf_file()[:100], "its ELF headers are broken"),
        (
            elf_file(strings=b"\0NotGetPjrtApi\0GetPjrtApiNot\0"),
            "it has no function GetPjrtApi, so it is not a PJRT plugin",
        ),
    ],
)
def test_bytes_of_other_files(tmp_path: Path, content: bytes, fault: str) -> None:
    assert _fault_of(tmp_path, content) == fault


@pytest.mark.parametrize(
    ("content", "architecture"),
    [
        (elf_file(machine=_OTHER_MACHINE[0]), f"{_OTHER_MACHINE[1]} (64 bits, little-endian)"),
        (elf_file(bits=32, machine=3), "x86 (32 bits, little-endian)"),
        (elf_file(byte_order=">", machine=22), "S390 (64 bits, big-endian)"),
        (elf_file(machine=4711), "machine 4711 (64 bits, little-endian)"),
    ],
)
def test_another_architecture(tmp_path: Path, content: bytes, architecture: str) -> None:
    fault = _fault_of(tmp_path, content)
    assert fault is not None
    assert fault.startswith(f"it is built for {architecture}, this process is ")
    assert f"({sys.maxsize.bit_length() + 1} bits, {sys.byteorder}-endian)" in fault


def test_invalid_paths(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    faults = {
        tmp_path / "missing": "the file does not exist",
        tmp_path / "missing" / "below": "the file does not exist",
        tmp_path: "it is a folder, not a library",
        Path(): "it is a folder, not a library",
        tmp_path / "pipe": "it is not a regular file",
        tmp_path / "loop": "it cannot be read: Too many levels of symbolic links",
        tmp_path / "\0": "a path cannot have a zero byte in it",
        tmp_path / ("x" * 300): "it cannot be read: File name too long",
    }
    assert {path: plugin_file_fault(path) for path in faults} == faults


def test_a_link_to_a_plugin_is_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "real.so").write_bytes(elf_file())
    (tmp_path / "link").symlink_to("real.so")
    assert plugin_file_fault(tmp_path / "link") is None


def test_every_shorter_file_is_refused(tmp_path: Path) -> None:
    whole = elf_file()
    accepted = [n for n in range(len(whole)) if _fault_of(tmp_path, whole[:n]) is None]
    assert accepted == []


def test_no_damage_makes_the_check_itself_fail(tmp_path: Path) -> None:
    whole = elf_file()
    choose = random.Random(20240229)
    faults = set()
    for offset in range(len(whole)):
        damaged = bytearray(whole)
        for _ in range(choose.randrange(1, 5)):
            damaged[offset] = choose.randrange(256)
            offset = choose.randrange(len(whole))
        faults.add(str(_fault_of(tmp_path, bytes(damaged)))[:10])
    assert {"its ELF he", "it is buil", "it is cut ", "it has no "} <= faults
