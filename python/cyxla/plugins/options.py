# SPDX-License-Identifier: Apache-2.0
"""Client options: which ones a plugin knows, cyxla's defaults, and the checks of their values.

cyxla checks options before a plugin sees them, because plugins differ. Some refuse an unknown name,
some ignore it silently; some refuse a value of the wrong type, some abort, as most do for a
negative number of devices.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from cyxla.errors import PluginError

__all__ = [
    "KnownOption",
    "OptionValue",
    "checked_options",
    "default_options",
    "is_utf8",
    "known_options",
    "optional_names",
]

OptionValue = bool | int | float | str | tuple[int, ...]
"""A client option's value; each Python type becomes the PJRT type of the same kind."""


class KnownOption(NamedTuple):
    """An option that a plugin knows: its type, and the range of an int."""

    type: type[bool] | type[int] | type[float] | type[str] | type[tuple[int, ...]]
    minimum: int = -(2**63)
    maximum: int = 2**63 - 1


# The plugins read 32 of the 64 bits, and abort if the devices do not fit in memory.
_DEVICE_COUNT = KnownOption(int, 1, 4096)
_OLD_CPU = {"cpu_device_count": _DEVICE_COUNT}
_CPU = {**_OLD_CPU, "asynchronous": KnownOption(bool)}
_GPU = {
    "abort_collectives_on_failure": KnownOption(bool),
    "allocator": KnownOption(str),
    "collective_memory_size": KnownOption(int),
    "enable_mock_nccl": KnownOption(bool),
    "max_inflight_computations": KnownOption(int),
    "memory_fraction": KnownOption(float),
    "mock_gpu_topology": KnownOption(str),
    "node_id": KnownOption(int),
    "num_nodes": KnownOption(int),
    "partition_index": KnownOption(int),
    "platform_name": KnownOption(str),
    "preallocate": KnownOption(bool),
    "should_stage_host_to_device_transfers": KnownOption(bool),
    "use_tfrt_gpu_client": KnownOption(bool),
    "visible_devices": KnownOption(tuple),
}

# Versions whose options were tested one by one. Releases add and remove options, so any other
# version counts as unknown.
_BY_VERSION: Mapping[tuple[str, str], Mapping[str, KnownOption]] = {
    ("lammps-jax-pjrt-cpu", "0.11.2"): _CPU,
    ("fastatomstruct-xla-cpu", "2026.6.23"): _OLD_CPU,
    ("xla-cpu-pjrt", "0.0.1"): _OLD_CPU,
    ("jax-cuda12-pjrt", "0.12.0.1"): _GPU,
    ("jax-cuda13-pjrt", "0.12.0.1"): _GPU,
}

# The types on which all plugins of a platform agree, checked for unknown plugins too.
_BY_PLATFORM: Mapping[str, Mapping[str, KnownOption]] = {"cpu": _CPU, "cuda": _GPU, "rocm": _GPU}

# On the CPU, inline execution is faster for short programs, and a program uses one device. The GPU
# defaults are what JAX always passes; `jax_environment` adds what JAX reads from the environment.
_GPU_DEFAULTS: Mapping[str, OptionValue] = {
    "allocator": "default",
    "abort_collectives_on_failure": False,
    "use_tfrt_gpu_client": False,
    "enable_mock_nccl": False,
}
_DEFAULTS: Mapping[str, Mapping[str, OptionValue]] = {
    "cpu": {"cpu_device_count": 1, "asynchronous": False},
    "cuda": {"platform_name": "cuda", **_GPU_DEFAULTS},
    "rocm": {"platform_name": "ROCM", **_GPU_DEFAULTS},
}


def known_options(
    distribution: str | None, version: str | None
) -> Mapping[str, KnownOption] | None:
    """Return the options that this version of a plugin knows, None if it was not tested."""
    if distribution is None or version is None:
        return None
    return _BY_VERSION.get((distribution, version))


def default_options(
    platform: str, known: Mapping[str, KnownOption] | None
) -> Mapping[str, OptionValue]:
    """Return cyxla's default options for a platform, without those that the plugin lacks."""
    defaults = _DEFAULTS.get(platform, {})
    return MappingProxyType(
        {name: value for name, value in defaults.items() if known is None or name in known}
    )


def optional_names(
    platform: str,
    create_options: Mapping[str, OptionValue],
    known: Mapping[str, KnownOption] | None,
) -> frozenset[str]:
    """Return the options that cyxla may drop if the plugin refuses them: its own defaults.

    Empty for a plugin whose options are known. `create_options` are those of the plugin, without
    the user's.
    """
    if known is not None:
        return frozenset()
    return frozenset(
        name
        for name, value in _DEFAULTS.get(platform, {}).items()
        if name in create_options
        and type(create_options[name]) is type(value)
        and create_options[name] == value
    )


def checked_options(
    options: Mapping[str, Any],
    *,
    plugin: str,
    platform: str,
    known: Mapping[str, KnownOption] | None,
) -> dict[str, OptionValue]:
    """Return the options after checking every name and value.

    `plugin` names the plugin in errors. If its options are not known, any name passes, and only
    types on which all plugins of the platform agree are checked.

    Raises:
        PluginError: the plugin does not know a name, or a value has the wrong type or range.
    """
    if not isinstance(options, Mapping):
        raise PluginError(
            f"options must be a mapping of names to values, not {_described(options)}; {plugin}"
        )
    table = _BY_PLATFORM.get(platform, {}) if known is None else known
    checked: dict[str, OptionValue] = {}
    for name, value in options.items():
        if not isinstance(name, str) or not name or not is_utf8(name):
            raise PluginError(f"option name {name!r} of {plugin} is not a name")
        option = table.get(name)
        if option is None and known is not None:
            raise PluginError(f"{plugin} has no option {name!r}.{_suggestion(name, known)}")
        checked[name] = _checked_value(name, value, option, plugin)
    return checked


def _checked_value(name: str, value: Any, option: KnownOption | None, plugin: str) -> OptionValue:
    kind = _kind(value)
    if kind is None:
        raise PluginError(
            f"option {name!r} of {plugin} is {_described(value)}; a value is a bool, an int, a "
            "float, a str or a tuple of ints"
        )
    if option is not None and option.type is not kind:
        advice = f" (write {value}.0)" if (option.type, kind) == (float, int) else ""
        raise PluginError(
            f"option {name!r} of {plugin} takes {_KINDS[option.type]}, "
            f"not {_described(value)}{advice}"
        )
    limits = KnownOption(int) if option is None else option
    for number in value if kind is tuple else (value,) if kind is int else ():
        if not limits.minimum <= number <= limits.maximum:
            raise PluginError(
                f"option {name!r} of {plugin} is {value!r}; "
                f"it takes {limits.minimum} to {limits.maximum}"
            )
    plain: OptionValue = kind(value)
    return plain


def _kind(value: object) -> type | None:
    """Return the narrowest allowed type of a value, None if its type is not allowed."""
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return None if isinstance(value, str) and not is_utf8(value) else kind
    if isinstance(value, tuple) and all(type(element) is int for element in value):
        return tuple
    return None


_KINDS: Mapping[type, str] = {
    bool: "a bool",
    int: "an int",
    float: "a float",
    str: "a str",
    tuple: "a tuple of ints",
}


def is_utf8(text: str) -> bool:
    """Return whether the text can be encoded as UTF-8, as native code needs it."""
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _described(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"


def _suggestion(name: str, known: Mapping[str, KnownOption]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} It knows {', '.join(sorted(known))}"
