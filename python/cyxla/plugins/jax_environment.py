# SPDX-License-Identifier: Apache-2.0
"""Reads JAX's environment variables for plugins and their client options, without importing JAX.

They mean the same as in JAX 0.12 (`jaxlib.xla_client.generate_pjrt_gpu_plugin_options`,
`jax._src.xla_bridge`, `jax._src.cloud_tpu_init`), so a machine set up for JAX works for cyxla.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cyxla.errors import PluginError
from cyxla.plugins.options import OptionValue

__all__ = [
    "LIBRARIES_VARIABLE",
    "TPU_LIBRARY_VARIABLE",
    "environment_options",
    "named_libraries",
    "num_tpu_chips",
    "set_tpu_variables",
    "tpu_library",
]

LIBRARIES_VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"
"""Lists plugins as "platform:path,platform:path"; a path that ends in .json is a description."""

TPU_LIBRARY_VARIABLE = "TPU_LIBRARY_PATH"
"""The path of a library to use instead of the one in the package libtpu."""

_OPTIONS_VARIABLE = "JAX_PJRT_CLIENT_CREATE_OPTIONS"
_FRACTION_VARIABLES = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
_TOPOLOGY_VARIABLE = "JAX_MOCK_GPU_TOPOLOGY"
_ALLOCATORS = ("default", "platform", "bfc", "cuda_async", "vmm", "address")
_GOOGLE_PCI_VENDOR = "0x1ae0"
_LAUNCH_BARRIER = "--xla_tpu_use_enhanced_launch_barrier"


def _allocator(text: str) -> str:
    if text.lower() not in _ALLOCATORS:
        raise ValueError(f"one of {', '.join(_ALLOCATORS)}")
    return text.lower()


def _fraction(text: str) -> float:
    try:
        fraction = float(text)
    except ValueError:
        fraction = -1.0
    if not fraction > 0.0:
        raise ValueError("a fraction of the device's memory, such as 0.75")
    return fraction


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _devices(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise ValueError("'all', or numbers of devices such as 0,1") from None


def _mebibytes(text: str) -> int:
    return _number(text) << 20


def _flag(text: str) -> bool:
    return bool(_number(text))


def _unless_false(text: str) -> bool:
    return text not in ("false", "False", "0")


# JAX's variables, the client option that each sets, and the function that parses it.
_GPU_VARIABLES: tuple[tuple[str, str, Callable[[str], OptionValue]], ...] = (
    ("XLA_PYTHON_CLIENT_ALLOCATOR", "allocator", _allocator),
    ("XLA_CLIENT_MEM_FRACTION", "memory_fraction", _fraction),
    ("XLA_PYTHON_CLIENT_MEM_FRACTION", "memory_fraction", _fraction),
    ("XLA_PYTHON_CLIENT_PREALLOCATE", "preallocate", _unless_false),
    ("XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "collective_memory_size", _mebibytes),
    ("XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE", "abort_collectives_on_failure", _flag),
    ("XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT", "use_tfrt_gpu_client", _flag),
)
_DEVICES_VARIABLES = {"cuda": "JAX_CUDA_VISIBLE_DEVICES", "rocm": "JAX_ROCM_VISIBLE_DEVICES"}


def environment_options(platform: str) -> dict[str, OptionValue]:
    """Return the client options that JAX's environment variables set for a platform.

    Empty for "cpu", where JAX does not use a plugin.

    Raises:
        PluginError: a variable is invalid, or two contradict each other.
    """
    options: dict[str, OptionValue] = {}
    if platform == "cpu":
        return options
    if platform in _DEVICES_VARIABLES:
        options |= _gpu_options(platform)
    if platform == "tpu" and num_tpu_chips() > 0:
        # JAX passes these for the machine's telemetry.
        options["ml_framework_name"] = "JAX"
        if (version := _jax_version()) is not None:
            options["ml_framework_version"] = version
    return options | _named_options(os.environ.get(_OPTIONS_VARIABLE, ""))


def _gpu_options(platform: str) -> dict[str, OptionValue]:
    options: dict[str, OptionValue] = {}
    if all(os.environ.get(variable) for variable in _FRACTION_VARIABLES):
        current, old = _FRACTION_VARIABLES
        raise PluginError(
            f"the environment variables {current}={os.environ[current]} and "
            f"{old}={os.environ[old]} are both set: unset {old}, the deprecated name"
        )
    for variable, option, value_of in _GPU_VARIABLES:
        if os.environ.get(variable):
            options[option] = _value(variable, value_of)
    devices = _DEVICES_VARIABLES[platform]
    if os.environ.get(devices, "all") != "all":
        options["visible_devices"] = _value(devices, _devices)
    return options | _mock_options()


def _mock_options() -> dict[str, OptionValue]:
    topology = os.environ.get(_TOPOLOGY_VARIABLE)
    if topology:
        num_nodes = _value(_TOPOLOGY_VARIABLE, _num_mock_nodes)
        mocked: dict[str, OptionValue] = {"mock_gpu_topology": topology}
    else:
        num_nodes = _value("MOCK_NUM_GPU_PROCESSES", _number, "0")
        mocked = {}
    if not isinstance(num_nodes, int) or num_nodes <= 0:
        return {}
    return {"enable_mock_nccl": True, "num_nodes": num_nodes, **mocked}


def _num_mock_nodes(topology: str) -> int:
    try:
        slices, hosts, _ = topology.split("x", 2)
        return int(slices) * int(hosts)
    except ValueError:
        raise ValueError("'slices x hosts per slice x devices per host'") from None


def _value(variable: str, value_of: Callable[[str], OptionValue], default: str = "") -> OptionValue:
    text = os.environ.get(variable) or default
    try:
        return value_of(text)
    except ValueError as error:
        raise PluginError(
            f"the environment variable {variable} is {text!r}; it takes {error}"
        ) from None


def _named_options(text: str) -> dict[str, OptionValue]:
    options: dict[str, OptionValue] = {}
    for part in text.split(";") if text else ():
        name, colon, value = part.partition(":")
        if not name or not colon or ":" in value:
            raise PluginError(
                f"the environment variable {_OPTIONS_VARIABLE} has the part {part!r}; it takes "
                "'name:value;name:value', and gives each value to the plugin as text"
            )
        options[name] = value
    return options


def _jax_version() -> str | None:
    from importlib import metadata

    try:
        return metadata.version("jax")
    except metadata.PackageNotFoundError:
        return None


def tpu_library() -> Path | None:
    """Return the library in `TPU_LIBRARY_PATH`; None if unset or, as in JAX, not a file."""
    path = os.environ.get(TPU_LIBRARY_VARIABLE)
    return Path(path).absolute() if path and os.path.isfile(path) else None


def named_libraries() -> Iterator[tuple[str, Path | None, dict[str, Any] | str]]:
    """Yield platform, library, and options or a fault, for `PJRT_NAMES_AND_LIBRARY_PATHS`."""
    for part in filter(None, os.environ.get(LIBRARIES_VARIABLE, "").split(",")):
        platform, separator, path = part.partition(os.pathsep)
        if not separator or not platform or not path:
            yield platform, None, f"its part {part!r} is not 'platform:path'"
        elif not path.endswith(".json"):
            yield platform, Path(path).absolute(), {}
        else:
            yield platform, *_described_library(Path(path))


def _described_library(path: Path) -> tuple[Path | None, dict[str, Any] | str]:
    try:
        described = json.loads(path.read_text())
        library = Path(described["library_path"]).absolute()
        options = dict(described.get("create_options") or {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return None, f"{path} does not describe a plugin: {type(error).__name__}: {error}"
    # JSON has lists instead of tuples.
    return library, {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }


def num_tpu_chips(devices: Path = Path("/sys/bus/pci/devices")) -> int:
    """Return the number of TPU chips on this machine's PCI bus, as JAX counts them."""
    count = 0
    for vendor in devices.glob("*.0/vendor"):
        try:
            count += vendor.read_text().strip() == _GOOGLE_PCI_VENDOR and _is_tpu(vendor.parent)
        except OSError:
            continue
    return count


# From JAX 0.12.0.1: TPU v3, PLC, v4, v5p, v5e, v6e, 7x, 8i, 8t.
_TPU_PCI_DEVICES = frozenset(
    f"0x00{number}" for number in ("27", "56", "5e", "62", "63", "6f", "76", "83", "7c")
)


def _is_tpu(device: Path) -> bool:
    return (device / "device").read_text().strip() in _TPU_PCI_DEVICES


def set_tpu_variables() -> None:
    """Set the environment variables that JAX sets before it loads libtpu.

    Without a chip, libtpu would wait over a minute for the cloud's metadata server. The variables
    are not restored: libtpu's threads read them later.
    """
    if num_tpu_chips() == 0:
        os.environ["TPU_SKIP_MDS_QUERY"] = "1"
        return
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    os.environ.setdefault("TPU_ML_PLATFORM", "JAX")
    if (version := _jax_version()) is not None:
        os.environ.setdefault("TPU_ML_PLATFORM_VERSION", version)
    os.environ.setdefault("ENABLE_RUNTIME_UPTIME_TELEMETRY", "1")
    arguments = os.environ.get("LIBTPU_INIT_ARGS", "")
    if _LAUNCH_BARRIER not in arguments:
        os.environ["LIBTPU_INIT_ARGS"] = f"{arguments} {_LAUNCH_BARRIER}=true".strip()
