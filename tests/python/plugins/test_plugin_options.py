# SPDX-License-Identifier: Apache-2.0
"""Client options are checked by name, type and range before a plugin sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cyxla.errors import PluginError
from cyxla.plugins.options import checked_options, default_options, known_options, optional_names

_LAMMPS = ("lammps-jax-pjrt-cpu", "0.11.2")
_FASTATOMSTRUCT = ("fastatomstruct-xla-cpu", "2026.6.23")
_XLA_CPU = ("xla-cpu-pjrt", "0.0.1")
_CUDA = ("jax-cuda13-pjrt", "0.12.0.1")
_UNTRIED = ("lammps-jax-pjrt-cpu", "0.12.0")
_EVERY_TYPE = {"a": True, "b": 3, "c": 0.5, "d": "text", "e": (1, 2), "f": ()}


def _checked(
    options: Any, package: tuple[str, str] = _LAMMPS, platform: str = "cpu"
) -> dict[str, Any]:
    known = known_options(*package)
    return checked_options(options, plugin="the plugin /p.so", platform=platform, known=known)


@pytest.mark.parametrize(
    ("package", "defaults"),
    [
        (_LAMMPS, {"cpu_device_count": 1, "asynchronous": False}),
        (_FASTATOMSTRUCT, {"cpu_device_count": 1}),
        (_XLA_CPU, {"cpu_device_count": 1}),
        (_UNTRIED, {"cpu_device_count": 1, "asynchronous": False}),
    ],
)
def test_cpu_defaults_follow_what_the_plugin_knows(
    package: tuple[str, str], defaults: dict[str, Any]
) -> None:
    assert default_options("cpu", known_options(*package)) == defaults


@pytest.mark.parametrize(("platform", "name"), [("cuda", "cuda"), ("rocm", "ROCM")])
def test_gpu_defaults_are_what_jax_always_passes(platform: str, name: str) -> None:
    assert default_options(platform, None) == {
        "platform_name": name,
        "allocator": "default",
        "abort_collectives_on_failure": False,
        "use_tfrt_gpu_client": False,
        "enable_mock_nccl": False,
    }


def test_platforms_without_defaults() -> None:
    assert default_options("tpu", None) == {}
    assert default_options("metal", None) == {}


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_defaults_pass_their_own_check(platform: str) -> None:
    package = {"cpu": _LAMMPS, "cuda": _CUDA}[platform]
    defaults = default_options(platform, known_options(*package))
    assert _checked(defaults, package, platform) == defaults


def test_unknown_distribution_or_version_has_no_table() -> None:
    assert known_options(None, None) is None
    assert known_options("lammps-jax-pjrt-cpu", None) is None
    assert known_options(*_UNTRIED) is None


def test_defaults_are_optional_for_an_unknown_plugin_only() -> None:
    defaults = {"cpu_device_count": 1, "asynchronous": False}
    assert optional_names("cpu", defaults, None) == set(defaults)
    assert optional_names("cpu", defaults, known_options(*_LAMMPS)) == set()


def test_only_what_cyxla_would_have_guessed_is_optional() -> None:
    options = {"cpu_device_count": 2, "asynchronous": 0, "other": 1}
    assert optional_names("cpu", options, None) == set()
    assert optional_names("cpu", {"asynchronous": False}, None) == {"asynchronous"}


@pytest.mark.parametrize(
    ("package", "options", "message"),
    [
        (
            _LAMMPS,
            {"nonsense": 1},
            "the plugin /p.so has no option 'nonsense'. It knows asynchronous, cpu_device_count",
        ),
        (
            _LAMMPS,
            {"asynchronus": True},
            "the plugin /p.so has no option 'asynchronus'. Did you mean 'asynchronous'? "
            "It knows asynchronous, cpu_device_count",
        ),
        (
            _XLA_CPU,
            {"asynchronous": False},
            "the plugin /p.so has no option 'asynchronous'. It knows cpu_device_count",
        ),
        (
            _FASTATOMSTRUCT,
            {"cpu_device_count": True},
            "option 'cpu_device_count' of the plugin /p.so takes an int, not True (bool)",
        ),
        (
            _XLA_CPU,
            {"cpu_device_count": "1"},
            "option 'cpu_device_count' of the plugin /p.so takes an int, not '1' (str)",
        ),
        (
            _XLA_CPU,
            {"cpu_device_count": 1.0},
            "option 'cpu_device_count' of the plugin /p.so takes an int, not 1.0 (float)",
        ),
        (
            _LAMMPS,
            {"asynchronous": 0},
            "option 'asynchronous' of the plugin /p.so takes a bool, not 0 (int)",
        ),
        (
            _LAMMPS,
            {"cpu_device_count": 0},
            "option 'cpu_device_count' of the plugin /p.so is 0; it takes 1 to 4096",
        ),
        (
            _LAMMPS,
            {"cpu_device_count": -1},
            "option 'cpu_device_count' of the plugin /p.so is -1; it takes 1 to 4096",
        ),
        (
            _LAMMPS,
            {"cpu_device_count": 2**32 + 1},
            "option 'cpu_device_count' of the plugin /p.so is 4294967297; it takes 1 to 4096",
        ),
        (
            _CUDA,
            {"memory_fraction": 1},
            "option 'memory_fraction' of the plugin /p.so takes a float, not 1 (int) (write 1.0)",
        ),
        (
            _CUDA,
            {"visible_devices": "0"},
            "option 'visible_devices' of the plugin /p.so takes a tuple of ints, not '0' (str)",
        ),
        # An unknown plugin may have any option, but shared names have the same type.
        (
            _UNTRIED,
            {"cpu_device_count": "two"},
            "option 'cpu_device_count' of the plugin /p.so takes an int, not 'two' (str)",
        ),
    ],
)
def test_an_option_that_the_plugin_does_not_take(
    package: tuple[str, str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PluginError) as caught:
        _checked(options, package, "cuda" if package is _CUDA else "cpu")
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [None, b"x", [1], {}, (1, 2.0), (True,), np.int64(1), "\ud800"])
def test_a_value_of_no_option_type(value: object) -> None:
    with pytest.raises(PluginError) as caught:
        _checked({"a": value}, _UNTRIED)
    assert str(caught.value) == (
        f"option 'a' of the plugin /p.so is {value!r} ({type(value).__name__}); a value is a bool, "
        "an int, a float, a str or a tuple of ints"
    )


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, (0, 2**63)])
def test_an_int_beyond_64_bits(value: object) -> None:
    with pytest.raises(PluginError, match="takes -9223372036854775808 to 9223372036854775807"):
        _checked({"a": value}, _UNTRIED)


@pytest.mark.parametrize("name", [1, "", None, b"x", "\udcff"])
def test_an_invalid_name(name: object) -> None:
    with pytest.raises(PluginError) as caught:
        _checked({name: 1})
    assert str(caught.value) == f"option name {name!r} of the plugin /p.so is not a name"


def test_options_that_are_not_a_mapping() -> None:
    with pytest.raises(PluginError, match=r"options must be a mapping of names to values, not \["):
        _checked([("a", 1)])


def test_an_untried_plugin_gets_every_type_as_it_is() -> None:
    checked = _checked(_EVERY_TYPE, _UNTRIED)
    assert checked == _EVERY_TYPE
    assert [type(value) for value in checked.values()] == [bool, int, float, str, tuple, tuple]


def test_subclasses_become_plain_values() -> None:
    checked = _checked({"a": np.float64(0.5), "b": np.str_("x")}, _UNTRIED)
    assert [type(value) for value in checked.values()] == [float, str]
