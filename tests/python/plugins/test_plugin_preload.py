# SPDX-License-Identifier: Apache-2.0
"""A CUDA plugin gets the libraries of its CUDA version, and the folder of its compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from cyxla.compilation.compile import usable_settings
from cyxla.compilation.settings import check_settings
from cyxla.plugins.discovery import Plugin, available_plugins, candidate_at
from cyxla.plugins.preload import cuda_data_folder, cuda_libraries, cuda_version
from cyxla.runtime import RuntimeInfo
from fake_packages import elf_file, install, only_site

_CUDA13 = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
_CUDA12 = "jax_plugins/xla_cuda12/xla_cuda_plugin.so"
_LIBRARIES_12 = [
    "cuda_runtime/lib/libcudart.so.12",
    "cuda_nvrtc/lib/libnvrtc.so.12",
    "cublas/lib/libcublas.so.12",
    "cublas/lib/libcublasLt.so.12",
    "nccl/lib/libnccl.so.2",
    "cuda_cupti/lib/libcupti.so.12",
    "cusparse/lib/libcusparse.so.12",
    "cusolver/lib/libcusolver.so.11",
    "cufft/lib/libcufft.so.11",
    "nvshmem/lib/libnvshmem_host.so.3",
    "cudnn/lib/libcudnn.so.9",
]
_LIBRARIES_13 = [
    "cu13/lib/libcudart.so.13",
    "cu13/lib/libnvrtc.so.13",
    "cu13/lib/libcublas.so.13",
    "cu13/lib/libcublasLt.so.13",
    "nccl/lib/libnccl.so.2",
    "cu13/lib/libcupti.so.13",
    "cu13/lib/libcusparse.so.12",
    "cu13/lib/libcusolver.so.12",
    "cu13/lib/libcufft.so.12",
    "nvshmem/lib/libnvshmem_host.so.3",
    "cudnn/lib/libcudnn.so.9",
]


def _nvidia(site: Path, libraries: list[str]) -> None:
    install(site, files={f"nvidia/{library}": b"" for library in libraries})


def test_each_plugin_has_its_own_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugins, libraries = tmp_path / "plugins", tmp_path / "libraries"
    install(plugins, "jax-cuda12-pjrt", "0.12.0.1", {_CUDA12: elf_file()})
    install(plugins, "jax-cuda13-pjrt", "0.12.0.1", {_CUDA13: elf_file()})
    # In another folder, where the plugin would not find them.
    _nvidia(libraries, _LIBRARIES_12)
    _nvidia(libraries, _LIBRARIES_13)
    only_site(monkeypatch, plugins, libraries)
    cuda13, cuda12 = available_plugins()
    assert list(cuda13.preload) == [libraries / "nvidia" / name for name in _LIBRARIES_13]
    assert list(cuda12.preload) == [libraries / "nvidia" / name for name in _LIBRARIES_12]
    assert candidate_at(plugins / _CUDA13, "cuda").plugin.preload == cuda13.preload


def test_packages_of_several_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    install(first, "jax-cuda13-pjrt", "0.12.0.1", {_CUDA13: elf_file()})
    _nvidia(first, ["cudnn/lib/libcudnn.so.9"])
    _nvidia(second, ["cudnn/lib/libcudnn.so.9", "cu13/lib/libcudart.so.13"])
    only_site(monkeypatch, first, second)
    (plugin,) = available_plugins()
    assert plugin.preload == (
        second / "nvidia/cu13/lib/libcudart.so.13",
        first / "nvidia/cudnn/lib/libcudnn.so.9",
    )


def test_other_plugins_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rocm = "jax_plugins/xla_rocm7/xla_rocm_plugin.so"
    install(tmp_path, "jax-rocm7-pjrt", "0.12.0", {rocm: elf_file()})
    _nvidia(tmp_path, _LIBRARIES_12)
    only_site(monkeypatch, tmp_path)
    (plugin,) = available_plugins()
    assert plugin.preload == ()
    assert cuda_version(plugin.path) is None
    assert cuda_data_folder(plugin.path) is None
    assert cuda_libraries(Path("/opt/xla_cuda14/xla_cuda_plugin.so")) == ()


def test_without_any_package_of_nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "jax-cuda13-pjrt", "0.12.0.1", {_CUDA13: elf_file()})
    only_site(monkeypatch, tmp_path)
    (plugin,) = available_plugins()
    assert plugin.preload == ()
    assert cuda_data_folder(plugin.path) is None


def test_the_folder_of_ptxas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, files={_CUDA12: b"", _CUDA13: b""})
    install(tmp_path / "other", files={"nvidia/cu13/lib/x": b""})
    nvidia = {"nvidia/cu13/bin/ptxas": b"", "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc": b""}
    install(tmp_path, files=nvidia)
    only_site(monkeypatch, tmp_path / "other", tmp_path)
    assert cuda_data_folder(tmp_path / _CUDA13) == tmp_path / "nvidia/cu13"
    assert cuda_data_folder(tmp_path / _CUDA12) == tmp_path / "nvidia/cuda_nvcc"
    monkeypatch.setenv("CUDA_ROOT", "/usr/local/cuda")
    assert cuda_data_folder(tmp_path / _CUDA13) == Path("/usr/local/cuda")


@pytest.mark.parametrize(
    ("platform", "options", "expected"),
    [
        ("cuda", {}, {"xla_gpu_cuda_data_dir": "/cuda"}),
        ("cuda", {"xla_gpu_cuda_data_dir": "/mine"}, {"xla_gpu_cuda_data_dir": "/mine"}),
        ("cpu", {}, {}),
        ("rocm", {}, {}),
    ],
)
def test_only_cuda_gets_the_folder_of_the_compiler(
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    options: dict[str, str],
    expected: dict[str, str],
) -> None:
    monkeypatch.setenv("CUDA_ROOT", "/cuda")
    plugin = Plugin(platform, Path("/site") / _CUDA13, "test")
    info = RuntimeInfo((0, 116), platform, False, False, plugin, None, None)
    settings = check_settings([], options, None, False, "auto", False)
    used = usable_settings(settings, info, stacklevel=1)
    assert used.overrides == expected
    # A plugin that does not know the option compiles without, unless the caller passed it.
    assert used.optional == set(expected) - set(options)
