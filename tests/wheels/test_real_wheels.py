# SPDX-License-Identifier: Apache-2.0
"""JAX's wheels for GPUs and TPUs, without a device: discovery, loading and error messages.

Downloads 700 MB, so only `make wheels` runs it. The wheels are kept in
the folder CYXLA_TEST_WHEELS, or build/wheels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

_FOLDER = Path(
    os.environ.get("CYXLA_TEST_WHEELS") or Path(__file__).resolve().parents[2] / "build" / "wheels"
)
_JAXLIB = "0.12.0.1"
_WHEELS = {
    "jax-cuda12-pjrt": "0.12.0.1",
    "jax-cuda13-pjrt": "0.12.0.1",
    "jax-cuda13-plugin": _JAXLIB,
    "jax-rocm7-pjrt": "0.12.0",
    "libtpu": "0.0.50",
}
# All answer within a second; without TPU_SKIP_MDS_QUERY libtpu takes more than a minute.
_SECONDS = 45


def _site(distribution: str) -> Path:
    """The folder of a distribution's unpacked wheel."""
    name = distribution.replace("-", "_")
    site = _FOLDER / "sites" / f"{sys.version_info[0]}.{sys.version_info[1]}" / name
    if not site.exists():
        version = _WHEELS[distribution]
        options = ["--no-deps", "--only-binary", ":all:", "--quiet"]
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", *options, "--dest", str(_FOLDER)),
                f"{distribution}=={version}",
            ],
            check=True,
            timeout=1200,
        )
        own = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        wheels = list(_FOLDER.glob(f"{name}-{version}-*.whl"))
        (wheel,) = [wheel for wheel in wheels if f"-{own}-" in wheel.name or "-py3-" in wheel.name]
        partial = site.parent / f"{name}.partial"
        zipfile.ZipFile(wheel).extractall(partial)
        partial.rename(site)
    return site


def _run(code: str, *distributions: str, **env: str) -> list[str]:
    sites = [str(_site(distribution)) for distribution in distributions]
    started = time.monotonic()
    variables = {name: text for name, text in os.environ.items() if not name.startswith("TPU_")}
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sites!r}\nimport cyxla\n{code}"],
        env={**variables, **env},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    print(f"{distributions}: {time.monotonic() - started:.1f} s")
    return ended.stdout.splitlines()


def test_all_are_found_and_none_is_imported_or_opened() -> None:
    lines = _run(
        """
for plugin in cyxla.available_plugins():
    if plugin.platform != "cpu":
        print(plugin.platform, plugin.source, plugin.path.exists())
packages = ("jax", "jax_plugins.", "libtpu", "jax_cuda13_plugin")
print([name for name in sys.modules if name.startswith(packages)])
print("_plugin.so" in open("/proc/self/maps").read())
""",
        *_WHEELS,
    )
    assert lines == [
        "cuda jax-cuda13-pjrt 0.12.0.1 True",
        "cuda jax-cuda12-pjrt 0.12.0.1 True",
        "rocm jax-rocm7-pjrt 0.12.0 True",
        "tpu libtpu 0.0.50 True",
        "[]",
        "False",
    ]


_LOAD = """
try:
    cyxla.initialize(platform=PLATFORM)
except cyxla.PluginError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("distribution", "platform", "expected"),
    [
        ("jax-cuda12-pjrt", "cuda", "No visible GPU devices"),
        ("jax-cuda13-pjrt", "cuda", "No visible GPU devices"),
        ("jax-rocm7-pjrt", "rocm", "pip install 'jax-rocm7-plugin[with-rocm]'"),
        ("libtpu", "tpu", "This machine has no TPU that libtpu can use"),
    ],
)
def test_without_a_device_the_error_says_what_to_do(
    distribution: str, platform: str, expected: str
) -> None:
    printed = "\n".join(_run(_LOAD.replace("PLATFORM", repr(platform)), distribution))
    assert expected in printed
    assert "set CYXLA_PLATFORM=cpu" in printed


def test_the_options_of_jaxs_variables_have_the_types_that_the_plugin_takes() -> None:
    variables = {
        "XLA_PYTHON_CLIENT_ALLOCATOR": "bfc",
        "XLA_CLIENT_MEM_FRACTION": "0.5",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB": "1",
        "JAX_CUDA_VISIBLE_DEVICES": "0",
    }
    printed = "\n".join(_run(_LOAD.replace("PLATFORM", "'cuda'"), "jax-cuda13-pjrt", **variables))
    # The plugin checks types first.
    assert "No visible GPU devices" in printed


# JAX's kernels need a jaxlib of their version, which may not be installed.
_AS_JAXLIB = f"""
import importlib.metadata as metadata
version = metadata.version
metadata.version = lambda name: "{_JAXLIB}" if name == "jaxlib" else version(name)
"""


def test_the_handlers_of_the_package_are_listed() -> None:
    lines = _run(
        _AS_JAXLIB
        + """
from cyxla.ffi.gpu import gpu_targets
found = list(gpu_targets("cuda", cyxla.find_plugin("cuda").path))
print(len(found), [t.name for t in found if t.api_version == 0], "jax" in sys.modules)
print([t.name for t in found if isinstance(t.target, dict)])
""",
        "jax-cuda13-pjrt",
        "jax-cuda13-plugin",
    )
    assert lines == ["33 ['triton_kernel_call'] False", "['triton_kernel_call_ffi']"]


# Uses PJRT's extension for custom calls on GPUs (type 0).
_REGISTER = """
import ctypes
from cyxla.ffi.gpu import gpu_targets

class Arguments(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("name_size", ctypes.c_size_t), ("api_version", ctypes.c_int),
                *((stage, ctypes.c_void_p)
                  for stage in ("instantiate", "prepare", "initialize", "execute"))]

def word(address):
    return ctypes.c_uint64.from_address(address).value

def call(address, arguments):
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)
    return function(ctypes.addressof(arguments))

python = ctypes.pythonapi
name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", python))
plugin = cyxla.find_plugin("cuda")
library = ctypes.CDLL(str(plugin.path), mode=ctypes.RTLD_LOCAL)
library.GetPjrtApi.restype = ctypes.c_void_p
table = library.GetPjrtApi()
print(call(word(table + 64), (ctypes.c_uint64 * 2)(16, 0)))  # PJRT_Plugin_Initialize
extension = word(table + 8)
while ctypes.c_int.from_address(extension + 8).value != 0:
    extension = word(extension + 16)
print(word(extension) >= 32)
found = list(gpu_targets("cuda", plugin.path))
refused = []
for name, target, api_version in found:
    stages = target if isinstance(target, dict) else {"execute": target}
    pointers = {stage: pointer_of(capsule, name_of(capsule)) for stage, capsule in stages.items()}
    arguments = Arguments(64, name.encode(), len(name), api_version, **pointers)
    if call(word(extension + 24), arguments) is not None:
        refused.append(name)
print(len(found), refused)
"""


def test_the_plugin_takes_every_handler_without_a_device() -> None:
    lines = _run(_AS_JAXLIB + _REGISTER, "jax-cuda13-pjrt", "jax-cuda13-plugin")
    assert lines == ["None", "True", "33 []"]
