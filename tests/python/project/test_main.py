# SPDX-License-Identifier: Apache-2.0
"""`python -m cyxla` prints what a bug report needs, even if something is missing or broken."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import cyxla
from c_library import build_library
from child_process import run_process
from cyxla import _runtime
from cyxla.__main__ import main
from cyxla.plugins.discovery import available_plugins
from fake_packages import install


def _report(*options: str, code: int = 0, **env: str) -> str:
    ended = run_process(*options, "-m", "cyxla", env=env)
    assert ended.returncode == code, ended.stderr
    assert ended.stderr == ""
    assert "Traceback" not in ended.stdout
    return ended.stdout


def test_a_whole_report() -> None:
    report = _report(CYXLA_NUM_THREADS="2")
    plugin = next(found for found in available_plugins() if found.platform == "cpu")
    expected = [
        "Versions:",
        f"  cyxla {cyxla.__version__} in {Path(cyxla.__file__).parent}",
        f"  extension module {_runtime.__file__}",
        f"  Python {platform.python_version()} (CPython)",
        *(f"  {name} {metadata.version(name)}" for name in ("numpy", "jax", "jaxlib")),
        "Plugins, the first of a platform is its default:",
        *(f"  cpu: {found.source}, {found.path}" for found in available_plugins()),
        "Default plugin:",
        f"  {plugin.source}, {plugin.path}",
        "  chosen as the first plugin for 'cpu', the first platform with a plugin of cuda, rocm, "
        "tpu, cpu",
        f"  ABI version: {_runtime.ABI_VERSION}",
        "  PJRT API: 0.115",
        "  dropped options: none",
        "  options: {'cpu_device_count': 1, 'asynchronous': False}",
        "  StableHLO: 1.20.0",
        "  aliased_inputs: True",
        "  inplace_outputs: True",
        "  threads: 2",
        "  jaxlib's FFI handlers registered: 62",
        "Environment variables:",
        "  CYXLA_NUM_THREADS=2",
    ]
    lines = report.splitlines()
    assert [line for line in expected if line not in lines] == []
    assert sorted(expected, key=lines.index) == expected
    assert re.search(r"^  StableHLO of JAX: \d+\.\d+\.\d+$", report, re.MULTILINE)
    assert re.search(r"^  platform: cpu \(.*\)$", report, re.MULTILINE)


def test_the_environment_chooses() -> None:
    older = next(found for found in available_plugins() if found.source.startswith("xla-cpu-pjrt"))
    by_path = _report(CYXLA_PJRT_PLUGIN=str(older.path))
    assert (
        f"  CYXLA_PJRT_PLUGIN, {older.path}\n  chosen as the path in CYXLA_PJRT_PLUGIN\n" in by_path
    )
    assert "  PJRT API: 0.81\n" in by_path
    lammps = next(found for found in available_plugins() if "asynchronous" in found.create_options)
    assert (
        f"\n  {lammps.source} is installed and faster: name its library in CYXLA_PJRT_PLUGIN. It "
        f"has the option 'asynchronous' and computes on the caller's thread; {older.source} "
        "does not, and passes every call that is not direct to a thread of its own\n"
    ) in by_path
    assert f"\n  CYXLA_PJRT_PLUGIN={older.path}\n" in by_path
    by_platform = _report(CYXLA_PLATFORM="cpu")
    assert "  chosen as the first plugin for 'cpu', which CYXLA_PLATFORM asks for\n" in by_platform
    assert "faster" not in by_platform


def test_wrong_choices_are_part_of_the_report() -> None:
    assert "\n  unknown platform 'abacus' in the environment" in _report(
        code=1, CYXLA_PLATFORM="abacus"
    )
    assert "'/no.so' (CYXLA_PJRT_PLUGIN): the file does not exist" in _report(
        code=1, CYXLA_PJRT_PLUGIN="/no.so"
    )
    threads = "\n  not loaded: ArgumentError: the environment variable CYXLA_NUM_THREADS is 'x'"
    assert threads in _report(code=1, CYXLA_NUM_THREADS="x")


def test_a_plugin_that_ends_its_process_is_reported(tmp_path: Path) -> None:
    report = _report(code=1, XLA_FLAGS="--xla_no_such_flag=1")
    assert "xla_no_such_flag" in report.split("\n  not loaded: ")[1].split("Environment")[0]
    aborting = "void abort(void); const void* GetPjrtApi(void) { abort(); return 0; }"
    library = build_library(tmp_path / "aborting.so", aborting)
    report = _report(code=1, CYXLA_PJRT_PLUGIN=str(library))
    assert "\n  not loaded: it ended its process with SIGABRT and this output:\n" in report
    assert f"\nEnvironment variables:\n  CYXLA_PJRT_PLUGIN={library}\n" in report


def test_rejected_plugins_and_failing_entry_points_are_reported(tmp_path: Path) -> None:
    install(tmp_path, "libtpu", "1.2", {"libtpu/libtpu.so": b"no library"})
    install(tmp_path, "bad", "1", {}, "[cyxla.plugins]\nbad = no_module_for_main\n")
    path = f"{tmp_path}:{':'.join(filter(None, sys.path))}"
    report = _report(code=1, PYTHONPATH=path, CYXLA_PLATFORM="abacus")
    assert (
        "\n  rejected: bad 1, entry point bad: no_module_for_main failed: ModuleNotFoundError: "
        "No module named 'no_module_for_main'\n"
        f"  rejected: libtpu 1.2, {tmp_path}/libtpu/libtpu.so: it is not an ELF library "
        "(it starts with b'no l')\n"
    ) in report


def _copy_modules(package: Path) -> None:
    """Copy the package without its compiled modules."""
    shutil.copytree(Path(cyxla.__file__).parent, package, ignore=shutil.ignore_patterns("*.so"))


def test_without_anything_installed(tmp_path: Path) -> None:
    # Like a source tree that is not built, with a Python without packages.
    package = tmp_path / "tree" / "cyxla"
    _copy_modules(package)
    report = _report("-S", code=1, PYTHONPATH=str(package.parent))
    assert f"  cyxla 0+unknown in {package}\n  extension module is missing\n" in report
    for distribution in ("numpy", "ml_dtypes", "jax", "jaxlib", "scipy"):
        assert f"\n  {distribution} is not installed\n" in report
    assert "default:\n  none\nDefault plugin:\n  no PJRT plugin is installed.\n" in report
    assert "\n  Install one:  pip install lammps-jax-pjrt-cpu\n" in report


def test_without_the_extension_but_with_plugins(tmp_path: Path) -> None:
    _copy_modules(tmp_path / "cyxla")
    report = _report(code=1, PYTHONPATH=f"{tmp_path}:{':'.join(filter(None, sys.path))}")
    assert "\n  extension module is missing\n" in report
    assert "\n  not loaded: ImportError: cannot import name '_runtime'" in report


def test_include_prints_the_two_folders() -> None:
    ended = run_process("-m", "cyxla", "--include")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == cyxla.get_include()


def test_include_without_headers_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(cyxla, "__path__", [str(tmp_path)])
    assert main(["--include"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("python -m cyxla: no cyxla/cyxla.h in ")


def test_help_and_wrong_usage() -> None:
    ended = run_process("-m", "cyxla", "--help")
    assert ended.returncode == 0
    assert "usage: python -m cyxla [-h] [--include]" in ended.stdout
    ended = run_process("-m", "cyxla", "--nonsense")
    assert ended.returncode == 2
    assert "unrecognized arguments: --nonsense" in ended.stderr


def test_a_reader_that_goes_away_causes_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "cyxla"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=100) == 1
        assert process.stderr.read() == ""


def test_text_that_the_terminal_cannot_show() -> None:
    # With an unknown platform no plugin is loaded.
    report = _report(code=1, CYXLA_NOTE="\u2713", PYTHONIOENCODING="ascii", CYXLA_PLATFORM="abacus")
    assert "CYXLA_NOTE=\\u2713\n" in report
