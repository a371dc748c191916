# SPDX-License-Identifier: Apache-2.0
"""A process loads one plugin, once, after all checks that need no loading."""

from __future__ import annotations

from pathlib import Path

import numpy._core._multiarray_umath as foreign_library
import pytest

import cyxla
from c_library import build_library
from child_process import run_code, run_process
from cyxla.plugins.discovery import available_plugins
from fake_packages import elf_file

_CPU_PLUGINS = [plugin for plugin in available_plugins() if plugin.platform == "cpu"]
_LAMMPS, _FASTATOMSTRUCT, _XLA_CPU = _CPU_PLUGINS[:3]
_API_VERSIONS = {
    _LAMMPS.source: ((0, 115), "1.20.0"),
    _FASTATOMSTRUCT.source: ((0, 106), "1.16.1"),
    _XLA_CPU.source: ((0, 81), "1.13.3"),
}

# Prints the error of each call.
_ATTEMPT = """
import os, warnings
from pathlib import Path
import cyxla
from cyxla import Plugin
def attempt(*arguments, **keywords):
    try:
        info = cyxla.initialize(*arguments, jax_targets=False, **keywords)
        print("initialized", info.api_version)
    except cyxla.Error as error:
        print(type(error).__name__, error)
"""


def _attempts(calls: str, env: dict[str, str] | None = None) -> list[str]:
    return run_code(_ATTEMPT + calls, env).splitlines()


@pytest.mark.parametrize("plugin", _CPU_PLUGINS[:3], ids=lambda plugin: plugin.source)
def test_details_of_each_cpu_plugin(plugin: cyxla.Plugin) -> None:
    ended = run_process(
        "-c",
        "import os, cyxla\n"
        "print(cyxla.is_initialized(), cyxla.error_info())\n"
        "info = cyxla.initialize(jax_targets=False)\n"
        "print(info.api_version, info.platform, info.stablehlo_version, info.threads)\n"
        "print(info.aliased_inputs, info.inplace_outputs)\n"
        "print(info.plugin.path, info.plugin.source, dict(info.plugin.create_options))\n"
        "print(cyxla.is_initialized(), cyxla.error_info() == (0, ''))\n"
        "print(cyxla.runtime_info() is info)\n"
        "print(os.environ['TF_CPP_MIN_LOG_LEVEL'])\n",
        env={"CYXLA_PJRT_PLUGIN": str(plugin.path)},
    )
    assert ended.returncode == 0, ended.stderr
    version, stablehlo = _API_VERSIONS[plugin.source]
    assert ended.stdout.splitlines() == [
        "False ErrorInfo(count=0, message='')",
        f"{version} cpu {stablehlo} None",
        "True True",
        f"{plugin.path} CYXLA_PJRT_PLUGIN {dict(plugin.create_options)}",
        "True True",
        "True",
        "1",
    ]
    assert ended.stderr == ""  # warnings about the plugins' options


def test_the_default_plugin_is_loaded_on_first_use() -> None:
    printed = run_code(
        """
        import os, cyxla
        from cyxla import runtime
        print(runtime.current_platform())
        print(cyxla.runtime_info().plugin == cyxla.find_plugin(), runtime.current_platform())
        print(os.environ["TF_CPP_MIN_LOG_LEVEL"])
        """,
        env={"TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    assert printed == "None\nTrue cpu\n2\n"


def test_later_calls_return_the_details_of_the_first() -> None:
    printed = run_code(f"""
        import warnings
        from pathlib import Path
        import cyxla
        lammps, older = Path({str(_LAMMPS.path)!r}), Path({str(_XLA_CPU.path)!r})
        info = cyxla.initialize(lammps, options={{"cpu_device_count": 2}}, threads=3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cyxla.initialize() is info
            assert cyxla.initialize(info.plugin, platform="cpu", threads=3) is info
            assert cyxla.initialize(lammps, options={{"cpu_device_count": 2}}) is info
        for arguments in (
            {{"plugin": older}},
            {{"plugin": cyxla.find_plugin("cpu")}},
            {{"platform": "cuda"}},
            {{"options": {{"cpu_device_count": 2, "asynchronous": 0, "nonsense": 1}}}},
            {{"jax_targets": False}},
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert cyxla.initialize(**arguments) is info
            (warning,) = caught
            print(warning.category.__name__, warning.filename, warning.message)
        try:
            cyxla.initialize(threads=4)
        except cyxla.ArgumentError as error:
            print(error)
    """)
    loaded = (
        f"RuntimeWarning <string> this process already runs the plugin {_LAMMPS.path} (path) with "
        "the options {'cpu_device_count': 2, 'asynchronous': False}; ignored: "
    )
    advice = ". A process loads one plugin: call cyxla.initialize before anything else needs it"
    assert printed.splitlines() == [
        f"{loaded}the plugin {_XLA_CPU.path}{advice}",
        f"{loaded}the option cpu_device_count=1{advice}",
        f"{loaded}platform 'cuda'{advice}",
        f"{loaded}the option asynchronous=0; the option nonsense=1{advice}",
        f"{loaded}jax_targets=False{advice}",
        "threads=4 comes too late: the plugin was loaded with threads=3, and its pool keeps its "
        "size. Call cyxla.initialize(threads=4) before anything else needs the plugin, or set "
        "CYXLA_NUM_THREADS",
    ]


def test_a_process_goes_on_after_invalid_plugins(tmp_path: Path) -> None:
    (tmp_path / "junk.so").write_bytes(b"\x7fELF not really")
    (tmp_path / "cut.so").write_bytes(elf_file()[:-1])
    paths = ["/nope.so", "libm.so.6", ".", "", str(tmp_path / "junk.so"), str(tmp_path / "cut.so")]
    lines = _attempts(f"""
for path in {[*paths, foreign_library.__file__]!r}:
    attempt(Path(path), platform="cpu", options={{}})
attempt({paths[0]!r})
attempt(Plugin("cpu", Path({paths[0]!r}), "mine"))
attempt({str(_LAMMPS.path)!r})
""")
    faults = [
        "the file does not exist",
        "the file does not exist",
        "it is a folder, not a library",
        "it is a folder, not a library",
        "its ELF headers are broken",
        "it is cut off: it has 235 bytes, its segments end at byte 236",
        "it has no function GetPjrtApi, so it is not a PJRT plugin",
    ]
    for path, fault, line in zip([*paths, foreign_library.__file__], faults, lines, strict=False):
        assert line.startswith(
            f"PluginError cannot load the PJRT plugin '{Path(path)}' (path): {fault}"
        )
    assert lines[7] == lines[0]
    assert lines[8].startswith(
        "PluginError cannot load the PJRT plugin '/nope.so' (mine): the file does not exist"
    )
    assert lines[9:] == ["initialized (0, 115)"]


def test_libraries_with_the_function_of_a_plugin_that_are_none(tmp_path: Path) -> None:
    header = "#include <pjrt_c_api.h>\nstatic PJRT_Api api;\n"
    define = "const PJRT_Api* GetPjrtApi(void) {{ {} return {}; }}"
    size = "api.struct_size = PJRT_Api_STRUCT_SIZE; "
    sources = {
        "null": header + define.format("", "0"),
        "empty": header + define.format("", "&api"),
        "major": header + define.format(f"{size}api.pjrt_api_version.major_version = 9;", "&api"),
        "old": header + define.format(f"{size}api.pjrt_api_version.minor_version = 3;", "&api"),
        "unresolved": "extern int nowhere(void); int GetPjrtApi(void) { return nowhere(); }",
    }
    include = cyxla.get_include()[0]
    libraries = [
        build_library(tmp_path / f"{name}.so", source, include) for name, source in sources.items()
    ]
    lines = _attempts(f"""
for path in {list(map(str, libraries))!r}:
    attempt(path)
    print("end")
attempt({str(_XLA_CPU.path)!r})
""")
    *messages, last = "\n".join(lines).split("\nend\n")
    for library, message in zip(libraries, messages, strict=True):
        assert message.startswith("PluginError ")
        assert str(library) in message
    assert "9" in messages[2]
    assert "0.3" in messages[3]
    assert "nowhere" in messages[4]
    assert last == "initialized (0, 81)"


@pytest.mark.parametrize("plugin", _CPU_PLUGINS[:3], ids=lambda plugin: plugin.source)
def test_options_that_would_end_the_process_are_refused_before(plugin: cyxla.Plugin) -> None:
    lines = _attempts(f"""
path = {str(plugin.path)!r}
for options in ({{"nonsense": 1}}, {{"cpu_device_count": "1"}}, {{"cpu_device_count": True}},
                {{"cpu_device_count": -1}}, {{"asynchronous": 1}}, {{1: 2}}, [("a", 1)]):
    attempt(path, options=options)
attempt(path, options={{"cpu_device_count": 2}})
print(dict(cyxla.runtime_info().plugin.create_options))
""")
    name = f"the plugin {plugin.path} (path)"
    knows = ", ".join(sorted(plugin.create_options))
    assert lines[:4] == [
        f"PluginError {name} has no option 'nonsense'. It knows {knows}",
        f"PluginError option 'cpu_device_count' of {name} takes an int, not '1' (str)",
        f"PluginError option 'cpu_device_count' of {name} takes an int, not True (bool)",
        f"PluginError option 'cpu_device_count' of {name} is -1; it takes 1 to 4096",
    ]
    assert lines[4].startswith("PluginError ")
    assert "'asynchronous'" in lines[4]
    assert lines[5] == f"PluginError option name 1 of {name} is not a name"
    assert lines[6].startswith("PluginError options must be a mapping")
    assert lines[7].startswith("initialized")
    assert lines[8] == str({**plugin.create_options, "cpu_device_count": 2})


# Clears the plugin's known options, as for an untested version.
_UNTRIED = "from cyxla.plugins import options\noptions._BY_VERSION = {}\n"


def test_options_of_an_untried_plugin_reach_it() -> None:
    lines = _attempts(f"""
{_UNTRIED}
attempt(options={{"nonsense": 1}})
attempt(options={{"cpu_device_count": "1"}})
attempt()
""")
    assert lines[0].startswith("PluginError ")
    assert "Unexpected option name passed to PJRT_Client_Create: nonsense" in lines[0]
    assert str(_LAMMPS.path) in lines[0]
    assert "takes an int, not '1' (str)" in lines[1]
    assert lines[2:] == ["initialized (0, 115)"]


def test_a_default_that_an_untried_plugin_refuses_is_dropped() -> None:
    # This plugin lacks pooling_allocator, which newer ones have.
    lines = _attempts(f"""
{_UNTRIED}
options._DEFAULTS = {{"cpu": {{"cpu_device_count": 1, "pooling_allocator": False}}}}
attempt(options={{"pooling_allocator": True}})
attempt()
print(dict(cyxla.runtime_info().plugin.create_options))
from cyxla import runtime
print(runtime.dropped_options())
warnings.simplefilter("error")
cyxla.initialize(cyxla.find_plugin())
""")
    assert lines[0].startswith("PluginError ")
    assert "pooling_allocator" in lines[0]
    assert lines[1:] == [
        "initialized (0, 115)",
        "{'cpu_device_count': 1}",
        "('pooling_allocator',)",
    ]


def test_arguments_that_mean_no_plugin() -> None:
    lines = _attempts("""
plugin = cyxla.find_plugin("cpu")
attempt(7)
attempt(plugin, platform="tpu")
attempt(platform="abacus")
attempt(plugin.path, platform="abacus")
attempt(plugin._replace(preload=(Path("/no/libx.so"),)))
attempt(plugin._replace(create_options={"a": None}))
attempt(plugin)
""")
    unknown = (
        "PluginError unknown platform 'abacus' in the argument platform: "
        "known are cuda, rocm, tpu, cpu; installed: cpu"
    )
    assert lines == [
        "ArgumentError plugin is 7 (int); give a cyxla.Plugin or the path of one",
        f"ArgumentError platform='tpu' contradicts the plugin {_LAMMPS.path}, which is for 'cpu': "
        "leave platform out, or give another plugin",
        unknown,
        unknown,
        f"PluginError cannot load /no/libx.so, which the plugin {_LAMMPS.path} ({_LAMMPS.source}) "
        "needs: /no/libx.so: cannot open shared object file: No such file or directory",
        f"PluginError the plugin {_LAMMPS.path} ({_LAMMPS.source}) has no option 'a'. It knows "
        "asynchronous, cpu_device_count",
        "initialized (0, 115)",
    ]
