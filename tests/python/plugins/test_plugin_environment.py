# SPDX-License-Identifier: Apache-2.0
"""JAX's environment variables become client options, with the types that the plugins take."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from child_process import run_code
from cyxla.errors import PluginError
from cyxla.plugins.discovery import (
    available_plugins,
    candidate_at,
    find_plugin,
    rejected_plugins,
)
from cyxla.plugins.jax_environment import environment_options, num_tpu_chips, set_tpu_variables
from cyxla.plugins.options import checked_options, known_options
from fake_packages import elf_file, install, only_site

_CUDA = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
_FRACTION = "XLA_CLIENT_MEM_FRACTION"
_OLD_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with packages; none of the variables are set."""
    folder = tmp_path / "site"
    folder.mkdir()
    only_site(monkeypatch, folder)
    return folder


@pytest.mark.parametrize(
    ("variable", "text", "option", "value"),
    [
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "CUDA_async", "allocator", "cuda_async"),
        (_FRACTION, "1", "memory_fraction", 1.0),
        (_OLD_FRACTION, ".5", "memory_fraction", 0.5),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "false", "preallocate", False),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "0", "preallocate", False),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "true", "preallocate", True),
        ("XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "3", "collective_memory_size", 3145728),
        (
            "XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE",
            "1",
            "abort_collectives_on_failure",
            True,
        ),
        ("XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT", "1", "use_tfrt_gpu_client", True),
        ("JAX_CUDA_VISIBLE_DEVICES", "2,0", "visible_devices", (2, 0)),
    ],
)
def test_a_variable_of_jax_is_an_option(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, option: str, value: object
) -> None:
    assert environment_options("cuda") == {}
    monkeypatch.setenv(variable, text)
    options = environment_options("cuda")
    assert options == {option: value}
    assert type(options[option]) is type(value)
    # Plugins get only types that they accept; for others some abort the process.
    known = known_options("jax-cuda13-pjrt", "0.12.0.1")
    assert checked_options(options, plugin="p", platform="cuda", known=known) == options
    assert environment_options("cpu") == {}
    assert environment_options("tpu") == {}
    monkeypatch.setenv(variable, "")
    if variable != "JAX_CUDA_VISIBLE_DEVICES":
        assert environment_options("cuda") == {}


def test_each_gpu_has_its_own_visible_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ROCM_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("JAX_CUDA_VISIBLE_DEVICES", "all")
    assert environment_options("rocm") == {"visible_devices": (1,)}
    assert environment_options("cuda") == {}


def test_mocked_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCK_NUM_GPU_PROCESSES", "4")
    assert environment_options("cuda") == {"enable_mock_nccl": True, "num_nodes": 4}
    monkeypatch.setenv("JAX_MOCK_GPU_TOPOLOGY", "2 x 3 x 8")
    assert environment_options("cuda") == {
        "enable_mock_nccl": True,
        "num_nodes": 6,
        "mock_gpu_topology": "2 x 3 x 8",
    }


def test_options_for_any_plugin_but_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PJRT_CLIENT_CREATE_OPTIONS", "a:1;b:x")
    assert environment_options("tpu") == {"a": "1", "b": "x"}
    assert environment_options("metal") == {"a": "1", "b": "x"}
    assert environment_options("cpu") == {}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {_FRACTION: ".5", _OLD_FRACTION: ".6"},
            f"the environment variables {_FRACTION}=.5 and {_OLD_FRACTION}=.6 are both set: unset "
            f"{_OLD_FRACTION}, the deprecated name",
        ),
        (
            {_FRACTION: "half"},
            f"the environment variable {_FRACTION} is 'half'; it takes a fraction of the device's "
            "memory, such as 0.75",
        ),
        (
            {"XLA_PYTHON_CLIENT_ALLOCATOR": "mine"},
            "the environment variable XLA_PYTHON_CLIENT_ALLOCATOR is 'mine'; it takes one of "
            "default, platform, bfc, cuda_async, vmm, address",
        ),
        (
            {"XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT": "yes"},
            "the environment variable XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT is 'yes'; it takes a "
            "whole number",
        ),
        (
            {"JAX_CUDA_VISIBLE_DEVICES": "GPU-1"},
            "the environment variable JAX_CUDA_VISIBLE_DEVICES is 'GPU-1'; it takes 'all', or "
            "numbers of devices such as 0,1",
        ),
        (
            {"JAX_MOCK_GPU_TOPOLOGY": "8"},
            "the environment variable JAX_MOCK_GPU_TOPOLOGY is '8'; it takes 'slices x hosts per "
            "slice x devices per host'",
        ),
        (
            {"JAX_PJRT_CLIENT_CREATE_OPTIONS": "a:1;b"},
            "the environment variable JAX_PJRT_CLIENT_CREATE_OPTIONS has the part 'b'; it takes "
            "'name:value;name:value', and gives each value to the plugin as text",
        ),
    ],
)
def test_a_variable_without_meaning(
    site: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    install(site, "jax-cuda13-pjrt", "0.12.0.1", {_CUDA: elf_file()})
    install(site, "xla-cpu-pjrt", "0.0.1", {"xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so": elf_file()})
    for variable, text in variables.items():
        monkeypatch.setenv(variable, text)
    for find in (find_plugin, lambda: candidate_at(site / _CUDA, "cuda").plugin):
        with pytest.raises(PluginError) as caught:
            find()
        assert str(caught.value) == message
    # It does not apply to the CPU, and does not end the list.
    assert find_plugin("cpu").platform == "cpu"
    assert [plugin.platform for plugin in available_plugins()] == ["cpu"]
    assert [rejected.reason for rejected in rejected_plugins()] == [message]


def test_found_plugins_have_the_options(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "jax-cuda13-pjrt", "0.12.0.1", {_CUDA: elf_file()})
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    (plugin,) = available_plugins()
    assert plugin.create_options["allocator"] == "platform"
    assert plugin.create_options["platform_name"] == "cuda"
    assert (
        find_plugin()
        == plugin
        == candidate_at(site / _CUDA, "cuda").plugin._replace(source=plugin.source)
    )


def test_a_library_in_place_of_libtpu(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "libtpu", "0.0.52", {"libtpu/libtpu.so": elf_file()})
    (tmp_path / "mine.so").write_bytes(elf_file())
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(tmp_path / "mine.so"))
    assert find_plugin("tpu") == ("tpu", tmp_path / "mine.so", "TPU_LIBRARY_PATH", {}, ())
    assert [plugin.source for plugin in available_plugins()] == [
        "TPU_LIBRARY_PATH",
        "libtpu 0.0.52",
    ]
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/no/libtpu.so")
    assert find_plugin("tpu").source == "libtpu 0.0.52"


def test_a_library_without_the_package_libtpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.so").write_bytes(elf_file())
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(tmp_path / "mine.so"))
    assert find_plugin().path == tmp_path / "mine.so"


def test_libraries_named_by_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("metal.so", "cuda.so"):
        (tmp_path / name).write_bytes(elf_file())
    described = tmp_path / "cuda.json"
    described.write_text(
        json.dumps(
            {
                "library_path": str(tmp_path / "cuda.so"),
                "create_options": {"visible_devices": [0, 1], "memory_fraction": 0.5},
            }
        )
    )
    (tmp_path / "wrong.json").write_text("[]")
    (tmp_path / "typed.json").write_text(
        json.dumps(
            {"library_path": str(tmp_path / "metal.so"), "create_options": {"a": {"b": None}}}
        )
    )
    variable = "PJRT_NAMES_AND_LIBRARY_PATHS"
    monkeypatch.setenv(variable, f"metal:{tmp_path}/metal.so,cuda:{described}")
    metal, cuda = available_plugins()
    assert metal == ("metal", tmp_path / "metal.so", variable, {}, ())
    assert cuda.path == tmp_path / "cuda.so"
    assert cuda.create_options["visible_devices"] == (0, 1)
    assert cuda.create_options["allocator"] == "default"
    monkeypatch.setenv(
        variable,
        f"nonsense,a:/no.so,b:{tmp_path}/wrong.json,c:{tmp_path}/typed.json",
    )
    assert available_plugins() == ()
    nonsense, missing, wrong, typed = map(str, rejected_plugins())
    assert nonsense == f"{variable}: its part 'nonsense' is not 'platform:path'"
    assert missing == f"{variable}, /no.so: the file does not exist"
    assert wrong.startswith(f"{variable}: {tmp_path}/wrong.json does not describe a plugin: ")
    assert "option 'a' of the plugin" in typed


def _device(folder: Path, vendor: str, device: str) -> None:
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "device").write_text(f"{device}\n")


def test_tpu_chips_are_counted_on_the_bus(tmp_path: Path) -> None:
    assert num_tpu_chips(tmp_path) == 0
    _device(tmp_path / "0000:00:04.0", "0x1ae0", "0x0063")
    _device(tmp_path / "0000:00:04.1", "0x1ae0", "0x0063")  # a second function of the chip
    _device(tmp_path / "0000:00:05.0", "0x1ae0", "0x0062")
    _device(tmp_path / "0000:00:06.0", "0x1ae0", "0x0042")  # a network card
    _device(tmp_path / "0000:00:07.0", "0x10de", "0x0063")
    assert num_tpu_chips(tmp_path) == 2


def test_options_of_libtpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TPU_SKIP_MDS_QUERY", "TPU_ML_PLATFORM", "GRPC_VERBOSITY", "LIBTPU_INIT_ARGS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr("cyxla.plugins.jax_environment.num_tpu_chips", lambda: 0)
    set_tpu_variables()
    assert os.environ["TPU_SKIP_MDS_QUERY"] == "1"
    assert "TPU_ML_PLATFORM" not in os.environ
    assert "ml_framework_name" not in environment_options("tpu")
    monkeypatch.delenv("TPU_SKIP_MDS_QUERY")
    for name in ("TPU_ML_PLATFORM_VERSION", "ENABLE_RUNTIME_UPTIME_TELEMETRY"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--mine=1")
    monkeypatch.setenv("GRPC_VERBOSITY", "DEBUG")
    monkeypatch.setattr("cyxla.plugins.jax_environment.num_tpu_chips", lambda: 4)
    set_tpu_variables()
    set_tpu_variables()
    assert "TPU_SKIP_MDS_QUERY" not in os.environ
    assert os.environ["TPU_ML_PLATFORM"] == "JAX"
    assert os.environ["GRPC_VERBOSITY"] == "DEBUG"
    barrier = "--xla_tpu_use_enhanced_launch_barrier=true"
    assert os.environ["LIBTPU_INIT_ARGS"] == f"--mine=1 {barrier}"
    assert environment_options("tpu")["ml_framework_name"] == "JAX"


def test_the_variables_stay_untouched_until_a_plugin_is_loaded(site: Path) -> None:
    install(site, "libtpu", "0.0.52", {"libtpu/libtpu.so": elf_file()})
    printed = run_code(
        f"""
        import os, sys
        sys.path.insert(0, {str(site)!r})
        import cyxla
        before = dict(os.environ)
        print(cyxla.find_plugin("tpu").source, dict(os.environ) == before)
        """
    )
    assert printed == "libtpu 0.0.52 True\n"
