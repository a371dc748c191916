# SPDX-License-Identifier: Apache-2.0
"""Which plugin is used, and the errors when none is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from cyxla.errors import PluginError
from cyxla.plugins.discovery import (
    PLATFORM_PREFERENCE,
    available_plugins,
    candidate_at,
    find_plugin,
)
from fake_packages import elf_file, install, only_site

_CPU_DEFAULTS = {"cpu_device_count": 1, "asynchronous": False}
_FILES = {
    "cpu": ("fastatomstruct-xla-cpu", "2026.6.23", "fastatomstruct_xla_cpu/libpjrt_cpu.so"),
    "cuda": ("jax-cuda13-pjrt", "0.12.0.1", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"),
    "rocm": ("jax-rocm7-pjrt", "0.12.0", "jax_plugins/xla_rocm7/xla_rocm_plugin.so"),
    "tpu": ("libtpu", "0.0.52", "libtpu/libtpu.so"),
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with packages, still empty."""
    folder = tmp_path / "site"
    folder.mkdir()
    only_site(monkeypatch, folder)
    return folder


def _install(site: Path, *platforms: str) -> None:
    for platform in platforms:
        distribution, version, library = _FILES[platform]
        install(site, distribution, version, {library: elf_file()})


def _error(platform: str | None = None) -> str:
    with pytest.raises(PluginError) as caught:
        find_plugin(platform)
    return str(caught.value)


def test_the_most_preferred_installed_platform(site: Path) -> None:
    for platform in reversed(PLATFORM_PREFERENCE):
        _install(site, platform)
        assert find_plugin().platform == platform
    assert [find_plugin(platform).platform for platform in _FILES] == list(_FILES)


def test_the_environment_names_the_platform(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(site, "cpu", "cuda")
    monkeypatch.setenv("CYXLA_PLATFORM", "cpu")
    assert find_plugin().platform == "cpu"
    assert find_plugin("cuda").platform == "cuda"
    monkeypatch.setenv("CYXLA_PLATFORM", "")
    assert find_plugin().platform == "cuda"


def test_the_environment_names_the_path(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(site, "cpu", "cuda")
    (tmp_path / "mine.so").write_bytes(elf_file())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CYXLA_PJRT_PLUGIN", "mine.so")
    plugin = find_plugin()
    assert plugin == ("cpu", tmp_path / "mine.so", "CYXLA_PJRT_PLUGIN", _CPU_DEFAULTS, ())
    assert find_plugin("cuda").create_options["platform_name"] == "cuda"
    monkeypatch.setenv("CYXLA_PLATFORM", "tpu")
    assert find_plugin().platform == "tpu"
    monkeypatch.setenv("CYXLA_PJRT_PLUGIN", "")
    monkeypatch.setenv("CYXLA_PLATFORM", "cuda")
    assert find_plugin().source == "jax-cuda13-pjrt 0.12.0.1"


def test_an_invalid_path_in_the_environment(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(site, "cpu")
    monkeypatch.setenv("CYXLA_PJRT_PLUGIN", "/no/such.so")
    assert _error() == (
        "cannot load the PJRT plugin '/no/such.so' (CYXLA_PJRT_PLUGIN): the file does not exist. "
        "Give the path of a plugin's shared library; `python -m cyxla` lists the installed ones"
    )


def test_nothing_installed(site: Path) -> None:
    assert available_plugins() == ()
    assert _error() == (
        "no PJRT plugin is installed.\n"
        "Install one:  pip install lammps-jax-pjrt-cpu\n"
        "or set CYXLA_PJRT_PLUGIN to the path of a plugin's shared library.\n"
        "Looked for: lammps-jax-pjrt-cpu, fastatomstruct-xla-cpu, xla-cpu-pjrt, jax-cuda13-pjrt, "
        "jax-cuda12-pjrt, jax-rocm7-pjrt, libtpu; the entry-point groups cyxla.plugins, "
        "xla_plugins, jax_plugins."
    )


def test_nothing_installed_for_a_platform(site: Path) -> None:
    _install(site, "cpu")
    assert _error("cuda") == (
        "no PJRT plugin for platform 'cuda' is installed.\n"
        "Install one:  pip install 'jax-cuda13-plugin[with-cuda]'\n"
        "or set CYXLA_PJRT_PLUGIN to the path of a plugin's shared library.\n"
        "Installed are plugins for cpu: choose one with platform= or CYXLA_PLATFORM.\n"
        "Looked for: jax-cuda13-pjrt, jax-cuda12-pjrt; the entry-point groups cyxla.plugins, "
        "xla_plugins, jax_plugins."
    )


def test_only_a_platform_without_preference(site: Path) -> None:
    library = elf_file()
    module = f"PLATFORM = 'metal'\ndef library_path(): return {str(site / 'metal.so')!r}"
    install(site, files={"metal.so": library, "only_metal.py": module.encode()})
    install(site, "metal-plugin", "1", {}, "[cyxla.plugins]\nmetal = only_metal\n")
    assert (
        "Installed are plugins for metal: choose one with platform= or CYXLA_PLATFORM" in _error()
    )
    assert find_plugin("metal").path == site / "metal.so"


def test_an_unknown_platform(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _error("abacus") == (
        "unknown platform 'abacus' in the argument platform: "
        "known are cuda, rocm, tpu, cpu; installed: none"
    )
    _install(site, "cpu", "tpu")
    assert _error("gpu") == (
        "unknown platform 'gpu' in the argument platform ('gpu' is JAX's name for 'cuda' and "
        "'rocm' together): known are cuda, rocm, tpu, cpu; installed: cpu, tpu"
    )
    monkeypatch.setenv("CYXLA_PLATFORM", "CPU")
    assert _error() == (
        "unknown platform 'CPU' in the environment variable CYXLA_PLATFORM: "
        "known are cuda, rocm, tpu, cpu; installed: cpu, tpu"
    )


def test_a_path_gets_the_defaults_of_the_platform(tmp_path: Path, site: Path) -> None:
    (tmp_path / "mine.so").write_bytes(elf_file())
    plugin = candidate_at(tmp_path / "mine.so").plugin
    assert plugin == ("cpu", tmp_path / "mine.so", "path", _CPU_DEFAULTS, ())
    assert candidate_at(tmp_path / "mine.so", "tpu").plugin.create_options == {}
    with pytest.raises(PluginError, match="unknown platform 'abacus'"):
        candidate_at(tmp_path / "mine.so", "abacus")


def test_a_path_to_an_installed_plugin_is_recognized(tmp_path: Path, site: Path) -> None:
    _install(site, "cpu", "cuda")
    (tmp_path / "link.so").symlink_to(site / _FILES["cpu"][2])
    # This plugin does not know `asynchronous`.
    assert candidate_at(tmp_path / "link.so").plugin.create_options == {"cpu_device_count": 1}
    cuda = site / _FILES["cuda"][2]
    assert candidate_at(cuda, "cuda").plugin.platform == "cuda"
    with pytest.raises(PluginError) as caught:
        candidate_at(cuda)
    assert str(caught.value) == (
        f"the PJRT plugin '{cuda}' (path) belongs to jax-cuda13-pjrt 0.12.0.1 and is for platform "
        "'cuda', not 'cpu': ask for platform='cuda', or set CYXLA_PLATFORM=cuda"
    )
