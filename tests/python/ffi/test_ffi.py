# SPDX-License-Identifier: Apache-2.0
"""The table of FFI targets: which are accepted or rejected, and when they are registered."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jax.ffi import pycapsule

from child_process import run_code
from cyxla.errors import ArgumentError, PluginError, UnsupportedError
from cyxla.ffi import targets

_JAXLIB_TARGETS = 62


def _capsule(address: int) -> object:
    return pycapsule(ctypes.c_void_p(address))


class _Plugin:
    """Stands for the plugin: records registrations, and may refuse a name."""

    def __init__(self, refused: str | None = None) -> None:
        self.given: list[tuple[str, str, int]] = []
        self.refused = refused

    def register(
        self, name: str, platform: str, address: int
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        if name == self.refused:
            raise PluginError(f"the plugin refused the custom-call target {name}")
        self.given.append((name, platform, address))
        return (0, 5 if name == "newer" else 2), (0, 2)

    def own(self) -> list[tuple[str, str, int]]:
        """The registrations, without the handlers of jaxlib."""
        return [target for target in self.given if "_ffi" not in target[0]]


@pytest.fixture
def table() -> Any:
    """The module with a table of its own, to leave the table of the process unchanged."""
    spec = importlib.util.spec_from_file_location("ffi_of_this_test", targets.__file__)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "target", "keywords", "error", "message"),
    [
        (
            "",
            _capsule(8),
            {},
            ArgumentError,
            "the name of an FFI target is a str of Unicode text, not ''",
        ),
        (
            None,
            _capsule(8),
            {},
            ArgumentError,
            "the name of an FFI target is a str of Unicode text, not None",
        ),
        (
            "a\ud800",
            _capsule(8),
            {},
            ArgumentError,
            "the name of an FFI target is a str of Unicode text, not 'a\\ud800'",
        ),
        (
            "f",
            _capsule(8),
            {"api_version": 0},
            UnsupportedError,
            "FFI target 'f' has api_version=0; only 1, the typed FFI, is supported: port the "
            "handler to XLA_FFI_DEFINE_HANDLER",
        ),
        (
            "f",
            {"instantiate": _capsule(8), "execute": _capsule(16), "prepare": _capsule(24)},
            {},
            UnsupportedError,
            "FFI target 'f' has the stages instantiate, prepare; only a handler whose one stage is "
            "'execute' is supported",
        ),
        ("f", {}, {}, ArgumentError, "FFI target 'f' is a dict without the stage 'execute'"),
        (
            "f",
            8,
            {},
            ArgumentError,
            "FFI target 'f' is 8 (int), not a PyCapsule with a handler's address; wrap a ctypes "
            "function with jax.ffi.pycapsule",
        ),
        (
            "f",
            {"execute": None},
            {},
            ArgumentError,
            "FFI target 'f' is None (NoneType), not a PyCapsule with a handler's address; wrap a "
            "ctypes function with jax.ffi.pycapsule",
        ),
        (
            "f",
            _capsule(8),
            {"platform": "abacus"},
            ArgumentError,
            "unknown platform 'abacus' of the FFI target 'f'; known are cpu, host, cuda, rocm, "
            "gpu, tpu, and None for the platform of the process's plugin",
        ),
        (
            "f",
            _capsule(8),
            {"platform": 1},
            ArgumentError,
            "platform of the FFI target 'f' is 1, not a name",
        ),
        (
            "xla_ffi_python_cpu_callback",
            _capsule(8),
            {},
            UnsupportedError,
            "FFI target 'xla_ffi_python_cpu_callback' is JAX's handler for Python callbacks; it "
            "works with JAX's own client only",
        ),
    ],
)
def test_invalid_registrations_are_refused(
    table: Any,
    name: Any,
    target: Any,
    keywords: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error) as caught:
        table.register_ffi_target(name, target, **keywords)
    assert str(caught.value) == message


def test_every_callback_target_of_jax_is_refused(table: Any) -> None:
    from jaxlib import _jax

    callbacks = [name for name in _jax.custom_call_targets("Host") if "python" in name]
    assert len(callbacks) >= 3
    for name in callbacks:
        with pytest.raises(UnsupportedError, match="JAX's handler for Python callbacks"):
            table.register_ffi_target(name, _capsule(8))


def test_earlier_targets_wait_for_the_plugin(table: Any) -> None:
    plugin = _Plugin()
    table.register_ffi_target("plain", _capsule(8))
    table.register_ffi_target("bundle", {"execute": _capsule(16)}, "cpu")
    table.register_ffi_target("any_case", _capsule(24), platform="Host", api_version=1)
    table.register_ffi_target("elsewhere", _capsule(32), platform="cuda")
    assert plugin.own() == []
    table.attach("cpu", plugin.register, register_earlier=True)
    assert plugin.own() == [("plain", "Host", 8), ("bundle", "Host", 16), ("any_case", "Host", 24)]
    table.register_ffi_target("later", _capsule(40))
    assert plugin.own()[3:] == [("later", "Host", 40)]


@pytest.mark.parametrize(
    ("platform", "xla_name"),
    [("cuda", "CUDA"), ("rocm", "ROCM"), ("tpu", "TPU"), ("metal", "metal")],
)
def test_names_of_platforms(table: Any, platform: str, xla_name: str) -> None:
    plugin = _Plugin()
    table.register_ffi_target("any", _capsule(8))
    table.register_ffi_target("gpu", _capsule(16), "gpu")
    table.attach(platform, plugin.register, register_earlier=True)
    table.register_ffi_target("own", _capsule(24), platform)
    gpu = [("gpu", xla_name, 16)] if platform in ("cuda", "rocm") else []
    assert plugin.given == [("any", xla_name, 8), *gpu, ("own", xla_name, 24)]
    assert table.jaxlib_registered() == (
        0,
        f"JAX's packages have none for platform {platform!r}",
    )


def test_earlier_targets_are_left_out_on_request(table: Any) -> None:
    plugin = _Plugin()
    table.register_ffi_target("early", _capsule(8))
    table.attach("cpu", plugin.register, register_earlier=False)
    assert plugin.given == []
    assert table.jaxlib_registered() == (0, "initialized with jax_targets=False")
    table.register_ffi_target("late", _capsule(16))
    table.register_ffi_target("early", _capsule(24))
    assert plugin.given == [("late", "Host", 16), ("early", "Host", 24)]


@pytest.mark.parametrize("attached", [False, True])
def test_one_name_has_one_function(table: Any, attached: bool) -> None:
    plugin = _Plugin()
    if attached:
        table.attach("cpu", plugin.register, register_earlier=False)
    table.register_ffi_target("f", _capsule(8), "cpu")
    table.register_ffi_target("f", _capsule(8), "cpu")
    table.register_ffi_target("f", _capsule(16), "cuda")
    for platform in ("cpu", "gpu", None):
        with pytest.raises(ArgumentError) as caught:
            table.register_ffi_target("f", _capsule(24), platform)
        assert str(caught.value) == (
            "FFI target 'f' is already registered with another function, and registrations are "
            "permanent: choose another name"
        )
    assert {target[2] for target in plugin.given} <= {8}


def test_an_earlier_target_that_the_plugin_refuses_is_a_warning(table: Any) -> None:
    plugin = _Plugin(refused="bad")
    table.register_ffi_target("bad", _capsule(8))
    table.register_ffi_target("good", _capsule(16))
    with pytest.warns(RuntimeWarning) as caught:
        table.attach("cpu", plugin.register, register_earlier=True)
    assert [str(warning.message) for warning in caught] == [
        "the FFI target 'bad' was not registered: the plugin refused the custom-call target bad"
    ]
    assert plugin.own() == [("good", "Host", 16)]
    with pytest.raises(PluginError, match="refused"):
        table.register_ffi_target("bad", _capsule(8))


def test_all_handlers_of_jaxlib_and_no_callback(table: Any) -> None:
    plugin = _Plugin()
    table.attach("cpu", plugin.register, register_earlier=True)
    names = [name for name, _, _ in plugin.given]
    assert table.jaxlib_registered() == (_JAXLIB_TARGETS, None)
    assert len(set(names)) == len(names) == _JAXLIB_TARGETS
    assert {"lapack_spotrf_ffi", "lapack_zgesdd_ffi", "cpu_csr_sparse_dense_ffi"} <= set(names)
    assert not any("callback" in name for name in names)
    assert all(address for _, _, address in plugin.given)
    with pytest.raises(ArgumentError, match="'lapack_spotrf_ffi' is already registered"):
        table.register_ffi_target("lapack_spotrf_ffi", _capsule(8))


def test_a_target_of_the_user_takes_the_place_of_jaxlibs(table: Any) -> None:
    plugin = _Plugin()
    table.register_ffi_target("lapack_spotrf_ffi", _capsule(8))
    table.attach("cpu", plugin.register, register_earlier=True)
    assert table.jaxlib_registered() == (_JAXLIB_TARGETS - 1, None)
    assert [given for given in plugin.given if given[0] == "lapack_spotrf_ffi"] == [
        ("lapack_spotrf_ffi", "Host", 8)
    ]


def test_a_plugin_without_ffi_runs_what_needs_none(table: Any) -> None:
    def refuse(name: str, platform: str, address: int) -> None:
        raise UnsupportedError(f"no FFI extension for {name}")

    table.attach("cpu", refuse, register_earlier=True)
    count, fault = table.jaxlib_registered()
    assert count == 0
    assert fault.startswith("UnsupportedError: no FFI extension for lapack_")
    for name in ("lapack_spotrf_ffi", "cpu_csr_sparse_dense_ffi"):
        assert table.registration(name) == (False, f"no FFI extension for {name}")


def test_one_handler_of_jaxlibs_that_is_refused_leaves_the_others(table: Any) -> None:
    plugin = _Plugin(refused="lapack_spotrf_ffi")
    table.attach("cpu", plugin.register, register_earlier=True)
    text = "the plugin refused the custom-call target lapack_spotrf_ffi"
    assert table.jaxlib_registered() == (_JAXLIB_TARGETS - 1, f"PluginError: {text}")
    assert table.registration("lapack_spotrf_ffi") == (False, text)
    assert table.registration("lapack_dpotrf_ffi").is_usable


def test_the_result_of_each_target(table: Any) -> None:
    plugin = _Plugin(refused="bad")
    table.register_ffi_target("newer", _capsule(8))
    table.register_ffi_target("elsewhere", _capsule(8), "cuda")
    assert table.registration("newer") is None
    table.attach("cpu", plugin.register, register_earlier=True)
    table.register_ffi_target("equal", _capsule(8))
    with pytest.raises(PluginError):
        table.register_ffi_target("bad", _capsule(8))
    assert table.registration("newer") == (True, "adapted from XLA FFI 0.5 to the plugin's 0.2")
    assert table.registration("equal") == (True, "registered unchanged (XLA FFI 0.2)")
    assert table.registration("bad") == (
        False,
        "the plugin refused the custom-call target bad",
    )
    assert table.registration("elsewhere") is None


def test_cyxlas_own_handlers_are_registered_in_any_case(table: Any) -> None:
    plugin = _Plugin()
    name = "xla_ffi_python_cpu_callback"
    table.register_own(name, 8)
    assert plugin.given == []
    table.attach("cpu", plugin.register, register_earlier=False)
    table.register_own("later", 16)
    table.register_own("later", 16)
    assert plugin.given == [(name, "Host", 8), ("later", "Host", 16)]
    with pytest.raises(ArgumentError, match="'later' is already registered"):
        table.register_own("later", 24)
    with pytest.raises(UnsupportedError, match="JAX's handler for Python callbacks"):
        table.register_ffi_target(name, _capsule(8))


def test_the_handlers_of_a_gpu_package_are_given_stage_by_stage(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def targets(platform: str, library: Path | None) -> Any:
        asked.append((platform, library))
        yield "plain", _capsule(8), 1
        yield "staged", {"instantiate": _capsule(16), "execute": _capsule(24)}, 1
        yield "old", _capsule(32), 0
        yield "of the user", _capsule(40), 1
        yield "refused", _capsule(48), 1

    given = []

    def register(name: str, api_version: int, stages: Mapping[str, int]) -> None:
        if name == "refused":
            raise PluginError("no room")
        given.append((name, api_version, dict(stages)))

    monkeypatch.setattr(table, "gpu_targets", targets)
    plugin, library = _Plugin(), Path("xla_cuda_plugin.so")
    table.register_ffi_target("of the user", _capsule(56))
    table.attach(
        "cuda", plugin.register, register_earlier=True, register_gpu=register, library=library
    )
    assert asked == [("cuda", library)]
    assert given == [
        ("plain", 1, {"execute": 8}),
        ("staged", 1, {"instantiate": 16, "execute": 24}),
        ("old", 0, {"execute": 32}),
    ]
    assert plugin.given == [("of the user", "CUDA", 56)]
    assert table.jaxlib_registered() == (3, "PluginError: no room")
    assert table.registration("staged").is_usable
    assert not table.registration("refused").is_usable
    with pytest.raises(ArgumentError, match="'staged' is already registered"):
        table.register_ffi_target("staged", _capsule(64))


def test_only_the_cpu_has_handlers_of_jaxlib(table: Any) -> None:
    assert len({name for name, _, _ in table.platform_targets("cpu")}) == _JAXLIB_TARGETS
    assert list(table.platform_targets("tpu")) == []


def test_without_jaxlib_its_handlers_are_left_out(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib", None)
    monkeypatch.delitem(sys.modules, "jaxlib.lapack", raising=False)
    plugin = _Plugin()
    table.attach("cpu", plugin.register, register_earlier=True)
    assert plugin.given == []
    count, fault = table.jaxlib_registered()
    assert count == 0
    assert fault.startswith("ModuleNotFoundError: ")


def test_the_handlers_come_without_importing_jax() -> None:
    printed = run_code("""
        import sys
        from cyxla.ffi import targets
        register = lambda name, platform, address: ((0, 1), (0, 1))
        targets.attach("cpu", register, register_earlier=True)
        print(targets.jaxlib_registered(), "jax" in sys.modules)
    """)
    assert printed == f"({_JAXLIB_TARGETS}, None) False\n"
