# SPDX-License-Identifier: Apache-2.0
"""Plugins are found in their packages, without importing or opening anything."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from child_process import run_code
from cyxla.errors import PluginError
from cyxla.plugins import discovery
from cyxla.plugins.discovery import Plugin, RejectedPlugin, available_plugins, rejected_plugins
from fake_packages import elf_file, install, only_site, own_machine

_CPU_DEFAULTS = {"cpu_device_count": 1, "asynchronous": False}
_LAMMPS = "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"
_CUDA13 = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
_CUDA12 = "jax_plugins/xla_cuda12/xla_cuda_plugin.so"
_ROCM7 = "jax_plugins/xla_rocm7/xla_rocm_plugin.so"
# Discovery must not import the packages' modules.
_FAILS = b"raise SystemExit('imported')\n"


def _reasons() -> list[str]:
    return [str(rejected) for rejected in rejected_plugins()]


def test_the_installed_cpu_plugins_newest_first() -> None:
    distributions = ("lammps-jax-pjrt-cpu", "fastatomstruct-xla-cpu", "xla-cpu-pjrt")
    found = [plugin for plugin in available_plugins() if plugin.platform == "cpu"]
    assert [plugin.source for plugin in found] == [
        f"{distribution} {metadata.version(distribution)}" for distribution in distributions
    ]
    assert [plugin.create_options for plugin in found] == [
        _CPU_DEFAULTS,
        {"cpu_device_count": 1},
        {"cpu_device_count": 1},
    ]
    assert all(plugin.path.is_absolute() and plugin.preload == () for plugin in found)


def test_finding_the_installed_plugins_imports_and_opens_none() -> None:
    printed = run_code("""
        import sys
        import cyxla
        found = cyxla.available_plugins() + (cyxla.find_plugin("cpu"),)
        packages = {"jax", "jaxlib", "numpy", "lammps_jax_pjrt_cpu", "fastatomstruct_xla_cpu",
                    "xla_plugins", "jax_plugins", "libtpu", "cyxla._runtime"}
        print(sorted(packages & set(sys.modules)))
        maps = open("/proc/self/maps").read()
        print([plugin.source for plugin in found if str(plugin.path) in maps], len(found) >= 4)
    """)
    assert printed == "[]\n[] True\n"


def test_layouts_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = elf_file()
    install(
        tmp_path, "libtpu", "0.0.52", {"libtpu/libtpu.so": library, "libtpu/__init__.py": _FAILS}
    )
    install(tmp_path, "jax-rocm7-pjrt", "0.12.0", {_ROCM7: library})
    install(tmp_path, "jax-cuda12-pjrt", "0.12.0.1", {_CUDA12: library})
    install(tmp_path, "jax-cuda13-pjrt", "0.12.0.1", {_CUDA13: library})
    install(tmp_path, files={"jax_plugins/xla_cuda13/__init__.py": _FAILS})
    install(tmp_path, "lammps-jax-pjrt-cpu", "0.11.2", {_LAMMPS: library})
    install(tmp_path, files={"lammps_jax_pjrt_cpu/__init__.py": _FAILS})
    only_site(monkeypatch, tmp_path)
    gpu = {
        "allocator": "default",
        "abort_collectives_on_failure": False,
        "use_tfrt_gpu_client": False,
        "enable_mock_nccl": False,
    }
    cuda = {"platform_name": "cuda", **gpu}
    assert available_plugins() == (
        Plugin("cpu", tmp_path / _LAMMPS, "lammps-jax-pjrt-cpu 0.11.2", _CPU_DEFAULTS),
        Plugin("cuda", tmp_path / _CUDA13, "jax-cuda13-pjrt 0.12.0.1", cuda),
        Plugin("cuda", tmp_path / _CUDA12, "jax-cuda12-pjrt 0.12.0.1", cuda),
        Plugin(
            "rocm", tmp_path / _ROCM7, "jax-rocm7-pjrt 0.12.0", {"platform_name": "ROCM", **gpu}
        ),
        Plugin("tpu", tmp_path / "libtpu/libtpu.so", "libtpu 0.0.52"),
    )
    assert rejected_plugins() == ()


def test_a_namespace_package_in_two_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    install(first, "jax-cuda12-pjrt", "1", {_CUDA12: elf_file()})
    install(second, "jax-cuda13-pjrt", "1", {_CUDA13: elf_file(), _CUDA12: elf_file()})
    only_site(monkeypatch, first, second)
    assert [(plugin.path, plugin.source) for plugin in available_plugins()] == [
        (second / _CUDA13, "jax-cuda13-pjrt 1"),
        (first / _CUDA12, "jax-cuda12-pjrt 1"),
        # Not the file that the distribution installed, so its version is unknown.
        (second / _CUDA12, "jax-cuda12-pjrt"),
    ]


def test_an_untried_version_gets_all_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, files={"fastatomstruct_xla_cpu/libpjrt_cpu.so": elf_file()})
    install(tmp_path, "lammps-jax-pjrt-cpu", "0.99", {_LAMMPS: elf_file()})
    only_site(monkeypatch, tmp_path)
    newer, without_metadata = available_plugins()
    assert (newer.source, newer.create_options) == ("lammps-jax-pjrt-cpu 0.99", _CPU_DEFAULTS)
    assert without_metadata.source == "fastatomstruct-xla-cpu"
    assert without_metadata.create_options == _CPU_DEFAULTS


def test_files_that_cannot_be_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = 62 if own_machine() != 62 else 183
    install(tmp_path, "lammps-jax-pjrt-cpu", "0.11.2")
    install(tmp_path, "fastatomstruct-xla-cpu", "1", {"fastatomstruct_xla_cpu/libpjrt_cpu.so": b""})
    install(tmp_path, "jax-cuda13-pjrt", "1", {_CUDA13: elf_file(machine=other)})
    install(tmp_path, files={"libtpu/other.py": b"", "jax_plugins/xla_cuda12/__init__.py": b""})
    only_site(monkeypatch, tmp_path)
    assert available_plugins() == ()
    missing, empty, foreign = rejected_plugins()
    assert missing == RejectedPlugin(
        "lammps-jax-pjrt-cpu 0.11.2", tmp_path / _LAMMPS, "the file does not exist"
    )
    assert (
        str(missing) == f"lammps-jax-pjrt-cpu 0.11.2, {tmp_path / _LAMMPS}: the file does not exist"
    )
    assert empty.reason == "it is empty"
    assert foreign.reason.startswith("it is built for ")
    with pytest.raises(PluginError) as caught:
        discovery.find_plugin("cpu")
    assert f"\nRejected: {missing}\nRejected: {empty}\n" in str(caught.value)


def test_other_packages_of_the_plugin_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = elf_file()
    install(
        tmp_path,
        "other-plugins",
        "2.0",
        {"xla_plugins/fast_cpu/fast.so": library, "xla_plugins/strange/strange.so": library},
        "[xla_plugins]\nfast_cpu = xla_plugins.fast_cpu\nstrange = xla_plugins.strange\n"
        "absent_cpu = nowhere.at_all\nmalformed_cpu = ???\n",
    )
    install(
        tmp_path,
        "xla-cpu-pjrt",
        "0.0.1",
        {"xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so": library},
        "[xla_plugins]\nxla_cpu_pjrt = xla_plugins.xla_cpu_pjrt\n",
    )
    only_site(monkeypatch, tmp_path)
    assert [(plugin.source, plugin.platform) for plugin in available_plugins()] == [
        ("xla-cpu-pjrt 0.0.1", "cpu"),
        ("other-plugins 2.0", "cpu"),
    ]
    assert _reasons() == [
        f"other-plugins 2.0, {tmp_path}/xla_plugins/strange/strange.so: the name of its entry "
        "point in the group xla_plugins names no platform"
    ]


def test_installations_without_their_metadata_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "lammps-jax-pjrt-cpu", "0.11.2", {_LAMMPS: elf_file()})
    install(
        tmp_path, "other", "1", entry_points="[cyxla.plugins]\nbroken = absent_module_of_other\n"
    )
    for file in tmp_path.glob("*.dist-info/METADATA"):
        file.unlink()
    only_site(monkeypatch, tmp_path)
    (plugin,) = available_plugins()
    assert plugin.source == "lammps-jax-pjrt-cpu"
    assert _reasons() == [
        "entry point broken: absent_module_of_other failed: "
        "ModuleNotFoundError: No module named 'absent_module_of_other'"
    ]


_ENTRY_POINT_MODULES = {
    "good": "PLATFORM = 'metal'\nCREATE_OPTIONS = {'speed': 2}",
    "bare": "PLATFORM = 'cpu'",
    "again": "PLATFORM = 'cpu'",
    "raising": "raise ImportError('no libfoo')",
    "exiting": "raise SystemExit(3)",
    "nameless": "PLATFORM = ''",
    "platformless": "",
    "optioned": "PLATFORM = 'cpu'\nCREATE_OPTIONS = {'cpu_device_count': '1'}",
    "mapless": "PLATFORM = 'cpu'\nCREATE_OPTIONS = 7",
}


def test_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["[cyxla.plugins]"]
    for name, text in _ENTRY_POINT_MODULES.items():
        library = "bare.so" if name == "again" else f"{name}.so"
        path = (
            f"\nfrom pathlib import Path\ndef library_path():\n    return Path({str(tmp_path)!r}, "
        )
        install(
            tmp_path,
            files={
                f"entry_{name}.py": f"{text}{path}{library!r})".encode(),
                f"{name}.so": elf_file(),
            },
        )
        lines.append(f"{name} = entry_{name}")
    install(
        tmp_path, files={"entry_lost.py": b"PLATFORM = 'cpu'\ndef library_path(): return '/no.so'"}
    )
    install(tmp_path, files={"entry_pathless.py": b"PLATFORM = 'cpu'"})
    lines += ["lost = entry_lost", "pathless = entry_pathless", "unparsable = ???"]
    install(tmp_path, "plug-ins", "3", {_LAMMPS: elf_file()}, "\n".join(lines))
    only_site(monkeypatch, tmp_path)

    source = "plug-ins 3, entry point"
    # In order of name, before the rest; "again" has the library of "bare", which is listed once.
    assert available_plugins() == (
        Plugin("cpu", tmp_path / "bare.so", f"{source} again"),
        Plugin("metal", tmp_path / "good.so", f"{source} good", {"speed": 2}),
        Plugin("cpu", tmp_path / _LAMMPS, "lammps-jax-pjrt-cpu", _CPU_DEFAULTS),
    )
    assert discovery.find_plugin("metal").source == f"{source} good"
    assert _reasons() == [
        f"{source} exiting: entry_exiting failed: SystemExit: 3",
        f"{source} lost, /no.so: the file does not exist",
        f"{source} mapless, {tmp_path}/mapless.so: options must be a mapping of names to values, "
        "not 7 (int); its CREATE_OPTIONS",
        f"{source} nameless, {tmp_path}/nameless.so: its PLATFORM is '', not a name",
        f"{source} optioned, {tmp_path}/optioned.so: option 'cpu_device_count' of its "
        "CREATE_OPTIONS takes an int, not '1' (str)",
        f"{source} pathless: entry_pathless failed: AttributeError: module 'entry_pathless' has no "
        "attribute 'library_path'",
        f"{source} platformless: entry_platformless failed: AttributeError: "
        "module 'entry_platformless' has no attribute 'PLATFORM'",
        f"{source} raising: entry_raising failed: ImportError: no libfoo",
    ] + [reason for reason in _reasons() if "unparsable" in reason]
    assert sum("unparsable: ??? failed: " in reason for reason in _reasons()) == 1
