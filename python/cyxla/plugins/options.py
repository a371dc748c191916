# SPDX-License-Identifier: Apache-2.0
"""Client options: which a plugin knows, which cyxla sets by default, and whether values fit.

Plugins disagree about options that they do not expect. Some refuse an unknown name, some ignore it
without a word; some refuse a value of another type, some end the process over it, as most do over a
negative number of devices. Hence all of this is decided before a plugin sees them.
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
"""A client option's value; each type is handed to the plugin as exactly that PJRT type."""


class KnownOption(NamedTuple):
    """One option that a plugin knows: its type, and the values allowed if it is an int."""

    type: type[bool] | type[int] | type[float] | type[str] | type[tuple[int, ...]]
    minimum: int = -(2**63)
    maximum: int = 2**63 - 1


# The plugins read 32 of the 64 bits, and end the process over a number that memory cannot hold.
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

# Only versions whose options were tried one by one. Another version is an unknown plugin: names are
# added and removed between releases.
_BY_VERSION: Mapping[tuple[str, str], Mapping[str, KnownOption]] = {
    ("lammps-jax-pjrt-cpu", "0.11.2"): _CPU,
    ("fastatomstruct-xla-cpu", "2026.6.23"): _OLD_CPU,
    ("xla-cpu-pjrt", "0.0.1"): _OLD_CPU,
    ("jax-cuda12-pjrt", "0.12.0.1"): _GPU,
    ("jax-cuda13-pjrt", "0.12.0.1"): _GPU,
}

# What all plugins of a platform take alike: a wrong type is found for an unknown plugin too.
_BY_PLATFORM: Mapping[str, Mapping[str, KnownOption]] = {"cpu": _CPU, "cuda": _GPU, "rocm": _GPU}

# Inline execution is faster for everything short; one device, because a program runs on one. What
# JAX always passes on a GPU stands here; what it takes from environment variables does not.
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
    """Return every option that this version of a distribution's plugin knows, None if untried."""
    if distribution is None or version is None:
        return None
    return _BY_VERSION.get((distribution, version))


def default_options(
    platform: str, known: Mapping[str, KnownOption] | None
) -> Mapping[str, OptionValue]:
    """Return cyxla's own options for a platform, without those that the plugin is known to lack."""
    defaults = _DEFAULTS.get(platform, {})
    return MappingProxyType(
        {name: value for name, value in defaults.items() if known is None or name in known}
    )


def optional_names(
    platform: str,
    create_options: Mapping[str, OptionValue],
    known: Mapping[str, KnownOption] | None,
) -> frozenset[str]:
    """Return which of the options are cyxla's guesses, to be dropped if the plugin refuses them.

    A plugin whose options are known has none. `create_options` are those of the plugin, without
    what the user asked for.
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
    """Return the options with every name and value checked.

    `plugin` names the plugin in errors. Of a plugin whose options are not known, names pass as they
    are, and types are checked where all plugins of its platform agree.

    Raises:
        PluginError: a name that the plugin does not know, or a value of a wrong type or range.
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
    """Return which of the allowed types a value is of, the narrowest; None if of none."""
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
    """Whether a text has an encoding, so that native code can be given it."""
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _described(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"


def _suggestion(name: str, known: Mapping[str, KnownOption]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} It knows {', '.join(sorted(known))}"
