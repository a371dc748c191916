# SPDX-License-Identifier: Apache-2.0
"""The handlers of JAX's GPU packages are listed; the packages here have the same layout."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from child_process import run_code
from cyxla.ffi.gpu import PACKAGES, gpu_targets
from fake_packages import install, only_site

_MODULES = {
    "_solver": "def registrations(): return {'cusolver_potrf_ffi': 'potrf'}",
    "_hybrid": "ready = []\ndef initialize(): ready.append(1)\n"
    "def registrations(): return {'cuhybrid_geqp3': ('geqp3', len(ready))}",
    "_linalg": "def registrations(): return {'cu_cholesky_update_ffi': 'update'}",
    "_sparse": "def registrations(): return {'cusparse_gtsv2_ffi': 'gtsv2',\n"
    "    'cusolver_potrf_ffi': 'again'}",
    "_prng": "def registrations(): return {'cu_threefry2x32_ffi': 'threefry'}",
    "_rnn": "def registrations(): return {'cudnn_rnn_ffi': 'rnn'}",
    "_triton": "def get_custom_call(): return 'legacy'\ndef registrations():\n"
    "    return {'triton_kernel_call_ffi': {'instantiate': 'i', 'execute': 'e'}}",
}


def _package(site: Path, name: str, version: str, **modules: str) -> None:
    files = {
        f"{name}/{module}.py": text.encode() for module, text in {**_MODULES, **modules}.items()
    }
    install(site, name.replace("_", "-"), version, {f"{name}/__init__.py": b"", **files})


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with packages, which has jaxlib's metadata."""
    only_site(monkeypatch, tmp_path)
    for package in (name for names in PACKAGES.values() for name in names):
        for module in ("", *(f".{module}" for module in _MODULES)):
            monkeypatch.setitem(sys.modules, package + module, None)
            monkeypatch.delitem(sys.modules, package + module)
    install(tmp_path, "jaxlib", "0.12.0.1")
    return tmp_path


def test_every_handler_once_with_its_version(site: Path) -> None:
    _package(site, "jax_cuda13_plugin", "0.12.0.1")
    assert list(gpu_targets("cuda")) == [
        ("cusolver_potrf_ffi", "potrf", 1),
        ("cuhybrid_geqp3", ("geqp3", 1), 1),
        ("cu_cholesky_update_ffi", "update", 1),
        ("cusparse_gtsv2_ffi", "gtsv2", 1),
        ("cu_threefry2x32_ffi", "threefry", 1),
        ("cudnn_rnn_ffi", "rnn", 1),
        ("triton_kernel_call", "legacy", 0),
        ("triton_kernel_call_ffi", {"instantiate": "i", "execute": "e"}, 1),
    ]
    assert list(gpu_targets("rocm")) == []
    assert list(gpu_targets("tpu")) == []


def test_the_package_of_the_plugin_is_taken(site: Path) -> None:
    _package(site, "jax_cuda12_plugin", "0.12.0.1", _prng="def registrations(): return {'x': 12}")
    _package(site, "jax_cuda13_plugin", "0.12.0.1", _prng="def registrations(): return {'x': 13}")
    for version, library in ((12, "xla_cuda12"), (13, "xla_cuda13"), (13, "mine")):
        found = {
            target.name: target.target
            for target in gpu_targets("cuda", Path(f"/site/{library}/xla_cuda_plugin.so"))
        }
        assert found["x"] == version
    assert list(gpu_targets("cuda", Path("/site/xla_cuda14/xla_cuda_plugin.so"))) == []


def test_cuda_kernels_of_another_version_are_not_used(site: Path) -> None:
    _package(site, "jax_cuda13_plugin", "0.11.2")
    with pytest.warns(RuntimeWarning) as caught:
        assert list(gpu_targets("cuda")) == []
    assert str(caught[0].message) == (
        "jax-cuda13-plugin 0.11.2 has GPU kernels for another version of JAX than jaxlib 0.12.0.1, "
        "and cyxla uses none of them: pip install 'jax-cuda13-plugin==0.12.0.1', or jax and jaxlib "
        "0.11.2"
    )


@pytest.mark.parametrize(
    ("package", "version", "platform"),
    [
        ("jax_cuda13_plugin", "0.12.0.1+cuda", "cuda"),
        ("jax_rocm7_plugin", "0.12.0", "rocm"),  # released on its own schedule
    ],
)
def test_versions_that_go_together(site: Path, package: str, version: str, platform: str) -> None:
    _package(site, package, version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(gpu_targets(platform))) == 8


def test_a_module_without_its_libraries_leaves_the_others(site: Path) -> None:
    failing = "raise ImportError('libamdhip64.so.7: cannot open shared object file')"
    _package(site, "jax_rocm7_plugin", "0.12.0", _solver=failing)
    with pytest.warns(RuntimeWarning) as caught:
        targets = list(gpu_targets("rocm"))
    # The name, which the sparse module has too, is then free.
    assert [target.target for target in targets if target.name.startswith("cusolver")] == ["again"]
    assert len(targets) == 8
    assert str(caught[0].message) == (
        "the GPU kernels in jax_rocm7_plugin._solver cannot be loaded: libamdhip64.so.7: cannot "
        "open shared object file. Programs that need them will not compile"
    )


def test_jax_is_not_imported(site: Path) -> None:
    _package(site, "jax_cuda13_plugin", "0.12.0.1")
    printed = run_code(
        f"""
        import sys
        sys.path.insert(0, {str(site)!r})
        from cyxla.ffi.gpu import gpu_targets
        print(len(list(gpu_targets("cuda"))), sorted({{"jax", "jaxlib"}} & set(sys.modules)))
        """
    )
    assert printed == "8 []\n"
