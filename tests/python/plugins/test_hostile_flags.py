# SPDX-License-Identifier: Apache-2.0
"""XLA_FLAGS for which XLA would abort the process, for each plugin and for JAX's own XLA."""

from __future__ import annotations

from pathlib import Path

import pytest

import cyxla
from c_library import build_library
from child_process import run_code
from cpu_plugins import CPU_LIBRARIES, variables
from cyxla.plugins import xla_flags
from cyxla.plugins.client import client_code

_ADVICE = (
    "Unset it, or take the flag out; options of one program go to compile_program(program, "
    "options={...})"
)
_INITIALIZE = """
    import os, cyxla
    try:
        cyxla.initialize(jax_targets=False)
        print("loaded")
    except cyxla.PluginError as error:
        print(error)
        del os.environ["XLA_FLAGS"]
        print(cyxla.initialize(jax_targets=False).platform)
"""


@pytest.mark.parametrize("library", CPU_LIBRARIES)
@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--xla_nope=1", "Unknown flag in XLA_FLAGS: --xla_nope=1"),
        (
            "--xla_cpu_enable_fast_math=maybe",
            "Couldn't interpret value maybe for flag xla_cpu_enable_fast_math",
        ),
        ("--xla_cpu_enable_fast_math=false", None),
    ],
)
def test_a_plugin_that_would_end_the_process_is_an_error(
    library: str, flags: str, complaint: str | None
) -> None:
    environment = variables(library)
    printed = run_code(_INITIALIZE, env={**environment, "XLA_FLAGS": flags})
    if complaint is None:
        assert printed == "loaded\n"
        return
    path = environment[cyxla.PLUGIN_ENVIRONMENT_VARIABLE]
    assert printed.splitlines() == [
        f"the plugin {path} ({cyxla.PLUGIN_ENVIRONMENT_VARIABLE}) cannot be used: it would end this"
        f" process over the environment variable XLA_FLAGS={flags!r}: {complaint}. {_ADVICE}",
        "cpu",
    ]


def test_a_file_of_flags_that_is_not_there() -> None:
    printed = run_code(_INITIALIZE, env={"XLA_FLAGS": "/nonexistent/flags"})
    assert "XLA_FLAGS='/nonexistent/flags': Could not open file" in printed
    assert printed.endswith("\ncpu\n")


def test_jax_that_would_end_the_process_is_an_error_of_lowering() -> None:
    printed = run_code(
        """
        import os, jax, cyxla
        def lower():
            return cyxla.lower(lambda x: x + 1, [jax.ShapeDtypeStruct((2,), "f4")])
        try:
            lower()
        except cyxla.LoweringError as error:
            print(error)
        os.environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math=false"
        executable, _ = cyxla.compile_program(lower())
        print(*executable.run([[1, 2]])[0])
        """,
        env={"XLA_FLAGS": "--xla_nope=1"},
    )
    assert printed.splitlines() == [
        "JAX would end this process over the environment variable XLA_FLAGS='--xla_nope=1': "
        f"Unknown flag in XLA_FLAGS: --xla_nope=1. {_ADVICE}",
        "2.0 3.0",
    ]


def test_without_the_variable_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(xla_flags.subprocess, "run", refuse)
    for value in (None, "", " "):
        monkeypatch.delenv("XLA_FLAGS", raising=False)
        if value is not None:
            monkeypatch.setenv("XLA_FLAGS", value)
        xla_flags.check_for_jax()
        _check()
    # Nor is the executable of a program that embeds Python, which would run again.
    monkeypatch.setenv("XLA_FLAGS", "--xla_nope=1")
    for executable in ("/usr/bin/solver", "", None):
        monkeypatch.setattr("sys.executable", executable)
        _check()


def _check(*preload: Path) -> None:
    plugin = cyxla.Plugin("cpu", Path("/p.so"), "path", preload=preload)
    xla_flags.check_for_plugin("the plugin /p.so", client_code(plugin, {}))


def test_the_child_opens_what_is_preloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build_library(
        tmp_path / "preloaded.so",
        "#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }\n",
    )
    monkeypatch.setenv("XLA_FLAGS", "--xla_nope=1")
    with pytest.raises(cyxla.PluginError, match=r"it ends without a message\. Unset it"):
        _check(library)


def test_the_child_finds_modules_where_this_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not from the environment, which the child would inherit.
    package = tmp_path / "cyxla"
    package.mkdir()
    (package / "__init__.py").write_text("import os\nos.abort()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", "--xla_nope=1")
    with pytest.raises(cyxla.PluginError, match="it ends without a message"):
        _check()


def test_a_child_without_output_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_nope=1")
    python = tmp_path / "python"
    monkeypatch.setattr("sys.executable", str(python))
    _check()  # it cannot be started
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    monkeypatch.setattr(xla_flags, "_SECONDS", 0.1)
    _check()  # it does not end
