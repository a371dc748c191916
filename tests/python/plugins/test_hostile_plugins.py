# SPDX-License-Identifier: Apache-2.0
"""Files that are not plugins, and options of every type: an error, never an abort."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import cyxla
from child_process import run_code
from cpu_plugins import CPU_LIBRARIES, run_with_plugin
from cyxla.plugins import elf_check

_HEADERS = 4096


def _plugin(library: str) -> Path:
    (path,) = (found.path for found in cyxla.available_plugins() if found.path.name == library)
    return path


def _cut_places(size: int) -> list[int]:
    """Every 64th byte of the headers, and offsets all over the rest."""
    return [*range(0, _HEADERS, 64), *range(_HEADERS, size, size // 97), size - 64, size - 1]


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_a_plugin_that_is_cut_off_is_refused(library: str, tmp_path: Path) -> None:
    # The same file each time, truncated further and further.
    cut = tmp_path / "cut.so"
    shutil.copyfile(_plugin(library), cut)
    assert elf_check.plugin_file_fault(cut) is None
    whole = cut.stat().st_size
    loadable = []
    for size in sorted(_cut_places(whole), reverse=True):
        os.truncate(cut, size)
        if elf_check.plugin_file_fault(cut) is None:
            loadable.append(size)
    # The rest of the file, such as section headers, is not loaded.
    assert all(size > 0.5 * whole for size in loadable)
    if not loadable:
        return
    shutil.copyfile(_plugin(library), cut)
    os.truncate(cut, min(loadable))
    printed = run_code(f"import cyxla; print(cyxla.initialize({str(cut)!r}).platform)")
    assert printed == "cpu\n"


def test_an_error_names_a_file_that_is_not_a_plugin(tmp_path: Path) -> None:
    whole = _plugin(CPU_LIBRARIES[0]).read_bytes()[:_HEADERS]
    other = bytearray(whole)
    other[18:20] = (183).to_bytes(2, "little")
    narrow = bytearray(whole)
    narrow[4] = 1
    files = {
        "text.so": b"a plugin, honestly\n",
        "script.so": b"#!/bin/sh\nexit 0\n",
        "empty.so": b"",
        "aarch64.so": bytes(other),
        "narrow.so": bytes(narrow),
        "cut.so": whole,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.so").mkdir()
    os.mkfifo(tmp_path / "pipe.so")
    (tmp_path / "dangling.so").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop.so").symlink_to(tmp_path / "loop.so")
    (tmp_path / "device.so").symlink_to("/dev/zero")
    shutil.copyfile(_library_of_python(), tmp_path / "library.so")
    names = sorted(path.name for path in tmp_path.iterdir())
    printed = run_code(
        f"""
        import cyxla
        for name in {names!r}:
            try:
                cyxla.initialize({str(tmp_path)!r} + "/" + name, platform="cpu")
                print("loaded", name)
            except cyxla.PluginError as error:
                print(name in str(error), error)
        print(cyxla.initialize(jax_targets=False).platform)
        """,
        seconds=60,
    )
    *refusals, after = printed.splitlines()
    assert len(refusals) == len(names) == 12
    assert all(line.startswith("True ") for line in refusals), refusals
    assert after == "cpu"


def _library_of_python() -> Path:
    """A library that is not a plugin."""
    import _ctypes

    return Path(_ctypes.__file__)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.so"
    secret.write_bytes(b"\x7fELF")
    secret.chmod(0)
    printed = run_code(f"""
        import os, cyxla.runtime
        if os.geteuid() == 0:
            os.seteuid(65534)  # root may read every file
        try:
            cyxla.initialize({str(secret)!r})
        except cyxla.PluginError as error:
            print(error)
    """)
    assert f"'{secret}' (path): it cannot be read: Permission denied" in printed


_OPTIONS = """
    import cyxla
    names = ["cpu_device_count", "asynchronous", "nope", "a" * 5000, "max_inflight_computations"]
    values = [True, False, 0, -1, 2**31, 2**63 - 1, -2**63, 2**64, 1.0, float("nan"), float("inf"),
              "", "1", "x" * 100_000, "a\\0b", (), (1,), (1, 2.0), (2**63,), [1], None, b"1", {}]
    count = 0
    for name in names:
        for value in values:
            right = {"cpu_device_count": int, "asynchronous": bool}.get(name)
            if type(value) is right and (right is bool or 1 <= value <= 4096):
                continue
            try:
                cyxla.initialize(options={name: value}, jax_targets=False)
            except cyxla.PluginError as error:
                assert name[:50] in str(error), error
                count += 1
            else:
                raise AssertionError((name, value))
    print(count, cyxla.initialize(jax_targets=False).platform)
"""


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_options_of_every_type(library: str) -> None:
    printed = run_with_plugin(library, _OPTIONS)
    # 5 names times 23 values, less the two valid ones of `asynchronous`, which one plugin has
    assert printed == f"{5 * 23 - 2} cpu\n"
