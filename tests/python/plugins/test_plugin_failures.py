# SPDX-License-Identifier: Apache-2.0
"""A plugin whose device or libraries are missing: its error, and what to install or set."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from c_library import build_library
from child_process import run_code
from cyxla.plugins.advice import faster_plugin, load_advice
from fake_packages import install

_ROCM = "jax_plugins/xla_rocm7/xla_rocm_plugin.so"
_CUDA = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
_CC = ("cc", "-shared", "-fPIC")
_NO_TABLE = "const void* GetPjrtApi(void) { return 0; }"


def _error(site: Path, statement: str, **env: str) -> str:
    """The message of the statement's PluginError; the folder's packages come before all others."""
    code = f"""
    import sys
    sys.path.insert(0, {str(site)!r})
    import cyxla
    try:
        {statement}
    except cyxla.PluginError as error:
        print(error)
    """
    return run_code(code, env=env)


def test_a_library_of_rocm_is_missing(tmp_path: Path) -> None:
    folder = (tmp_path / _ROCM).parent
    folder.mkdir(parents=True)
    needed = build_library(tmp_path / "librocprofiler-sdk.so.1", "int needed;")
    subprocess.run(
        [*_CC, "-Wl,--no-as-needed", "-x", "c", "-", "-x", "none", needed, "-o", tmp_path / _ROCM],
        input=_NO_TABLE,
        text=True,
        timeout=100,
        check=True,
        cwd=tmp_path,
    )
    needed.unlink()
    install(tmp_path, "jax-rocm7-pjrt", "0.12.0")
    printed = _error(tmp_path, "cyxla.initialize()")
    assert "librocprofiler-sdk.so.1" in printed.splitlines()[0]
    assert printed.splitlines()[1:] == [
        "librocprofiler-sdk.so.1 belongs to ROCm: install ROCm under /opt/rocm, or pip install "
        "'jax-rocm7-plugin[with-rocm]'",
        "'rocm' was chosen as the most preferred platform that has a plugin. If this machine has "
        "no such device, set CYXLA_PLATFORM=cpu",
    ]
    asked = _error(tmp_path, "cyxla.initialize(platform='rocm')")
    assert asked.splitlines()[-1] == (
        "To compute on the CPU instead, use platform='cpu' or set CYXLA_PLATFORM=cpu"
    )


def test_libtpu_is_loaded_with_its_variables_set(tmp_path: Path) -> None:
    source = """
    #include <stdio.h>
    #include <stdlib.h>
    const void* GetPjrtApi(void) {
      const char* skip = getenv("TPU_SKIP_MDS_QUERY");
      printf("skip %s\\n", skip ? skip : "unset");
      fflush(stdout);
      return 0;
    }
    """
    install(tmp_path, "libtpu", "0.0.52", {"libtpu/__init__.py": b"raise SystemExit('imported')\n"})
    build_library(tmp_path / "libtpu/libtpu.so", source)
    printed = _error(tmp_path, "cyxla.initialize()")
    assert printed.splitlines()[:2] == [
        "skip 1",
        f"the plugin {tmp_path}/libtpu/libtpu.so (libtpu 0.0.52) cannot be used:"
        f" {tmp_path}/libtpu/libtpu.so is not a usable PJRT plugin: GetPjrtApi returned null",
    ]


def test_libraries_of_nvidia_that_cannot_be_opened_do_not_hide_the_plugins_error(
    tmp_path: Path,
) -> None:
    cudart = "nvidia/cu13/lib/libcudart.so.13"
    install(tmp_path, "jax-cuda13-pjrt", "0.12.0.1", {cudart: b"no library"})
    (tmp_path / _CUDA).parent.mkdir(parents=True)
    build_library(tmp_path / _CUDA, _NO_TABLE)
    build_library(tmp_path / "nvidia/cu13/lib/libnvrtc.so.13", "int there;")
    printed = _error(tmp_path, "cyxla.initialize(platform='cuda')")
    lines = printed.splitlines()
    assert lines[0].endswith(f"{_CUDA} is not a usable PJRT plugin: GetPjrtApi returned null")
    assert lines[1].startswith(f"Not opened before it: {tmp_path / cudart}: ")
    assert len(lines) == 3


def test_the_libraries_are_open_before_the_plugin(tmp_path: Path) -> None:
    source = """
    #include <dlfcn.h>
    #include <stdio.h>
    const void* GetPjrtApi(void) {
      printf("by soname: %d\\n", dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD) != 0);
      fflush(stdout);
      return 0;
    }
    """
    install(tmp_path, "jax-cuda13-pjrt", "0.12.0.1", {"nvidia/cu13/lib/x": b""})
    cudart = tmp_path / "nvidia/cu13/lib/libcudart.so.13"
    (tmp_path / _CUDA).parent.mkdir(parents=True)
    build_library(tmp_path / _CUDA, source)
    subprocess.run(
        [*_CC, "-Wl,-soname,libcudart.so.13", "-x", "c", "-", "-o", cudart],
        input="int there;",
        text=True,
        timeout=100,
        check=True,
    )
    assert _error(tmp_path, "cyxla.initialize()").startswith("by soname: 1\n")


_NO_GPU = "PJRT_Client_Create: No visible GPU devices."


@pytest.mark.parametrize(
    ("platform", "message", "advice"),
    [
        ("cuda", _NO_GPU, "/dev/nvidia0 is missing: install NVIDIA's driver"),
        ("rocm", _NO_GPU, "/dev/kfd is missing: install the amdgpu driver"),
        (
            "tpu",
            "PJRT_Client_Create: TPU initialization failed: No jellyfish device found.",
            "This machine has no TPU that libtpu can use; another program may hold it",
        ),
        (
            "cuda",
            "libcuda_x.so.1: cannot open shared object file: No such file or directory",
            "libcuda_x.so.1 is missing: pip install 'jax-cuda12-plugin[with-cuda]'",
        ),
        ("cpu", "libm.so.9: cannot open shared object file", ""),
        ("cuda", "something else", ""),
    ],
)
def test_advice_follows_what_the_plugin_says(
    monkeypatch: pytest.MonkeyPatch, platform: str, message: str, advice: str
) -> None:
    monkeypatch.setattr("cyxla.plugins.advice._NVIDIA_DEVICES", ("/dev/no/nvidia0",))
    monkeypatch.setattr("cyxla.plugins.advice._ROCM_DEVICE", "/dev/no/kfd")
    given = load_advice(platform, "jax-cuda12-pjrt", message)
    assert given.startswith(advice.replace("/dev/", "/dev/no/") if advice else "")
    assert bool(given) == bool(advice)


def test_with_a_driver_the_variables_that_hide_devices_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cyxla.plugins.advice._NVIDIA_DEVICES", (str(tmp_path),))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.delenv("JAX_CUDA_VISIBLE_DEVICES", raising=False)
    assert load_advice("cuda", "jax-cuda13-pjrt", _NO_GPU) == (
        "Check NVIDIA's driver (nvidia-smi lists its devices) and CUDA_VISIBLE_DEVICES=-1"
    )


def test_the_faster_plugin_is_named_only_to_one_that_is_slower() -> None:
    assert faster_plugin("mine 1", {"asynchronous": None}, ["lammps-jax-pjrt-cpu 0.11.2"]) == ""
    assert faster_plugin("old 1", {"cpu_device_count": None}, ["old 1"]) == (
        "lammps-jax-pjrt-cpu is faster: pip install lammps-jax-pjrt-cpu, which requires "
        "jax<=0.11.2. It has the option 'asynchronous' and computes on the caller's thread; old 1 "
        "does not, and passes every call that is not direct to a thread of its own"
    )
