# SPDX-License-Identifier: Apache-2.0
"""The package tests/downstream, built with Meson against the installed cyxla, runs programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

import cyxla
from cyxla import _runtime
from support.native import run_with_modules

_SOURCES = Path(__file__).parents[2] / "downstream"

_PRELUDE = """
import sys, threading, time
import jax, jax.numpy as jnp
import numpy as np
import cyxla, minima

minimum = np.arange(1.0, 6.0)

def build(dtype):
    function = jax.value_and_grad(lambda x: ((x - minimum.astype(dtype)) ** 2).sum())
    return cyxla.compile_program(cyxla.lower(function, [jax.ShapeDtypeStruct((5,), dtype)]))[0]

function = build(np.float64)
starts = np.random.default_rng(0).normal(size=(6, 5))
"""


def install(
    folder: Path, env: Mapping[str, str] | None = None, options: tuple[str, ...] = ()
) -> Path:
    """Build a copy of the package in the folder and return the folder it was installed into."""
    source, site = folder / "source", folder / "site"
    shutil.copytree(_SOURCES, source)
    command: list[str | Path] = [sys.executable, "-m", "pip", "install", "--no-build-isolation"]
    command += ["--no-deps", "--disable-pip-version-check", *options]
    command += [f"-Cbuild-dir={folder / 'build'}", "-Csetup-args=-Dbuildtype=debug"]
    command += ["--target", site, source]
    tools = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    done = subprocess.run(
        command,
        env={**os.environ, "PATH": tools, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package installed; pip checks its requirement of cyxla."""
    return install(tmp_path_factory.mktemp("minima"), options=("--check-build-dependencies",))


def test_its_threads_run_a_program_while_the_main_thread_holds_the_gil(site: Path) -> None:
    # A waiting Python thread requests the GIL after the switch interval, which no call reaches, so
    # it beats only while the GIL is released, for example in the sleep.
    run_with_modules(
        site,
        _PRELUDE
        + """
beats = 0
def beat():
    global beats
    while True:
        beats += 1
        time.sleep(0.0005)
threading.Thread(target=beat, daemon=True).start()
sys.setswitchinterval(1000)

def beats_during(call):
    before = beats
    start = time.perf_counter()
    result = call()
    assert time.perf_counter() - start > 0.01
    return beats - before, result

assert beats_during(lambda: time.sleep(0.1))[0] > 0

beaten, ends = beats_during(lambda: minima.descend(function, starts, 0.1, 200_000))
assert beaten == 0, beaten
np.testing.assert_allclose(ends, np.tile(minimum, (6, 1)), rtol=1e-12)

points = np.random.default_rng(1).normal(size=(1_000_000, 5))
beaten, values = beats_during(lambda: minima.evaluate(function, points, 8))
assert beaten == 0, beaten
np.testing.assert_allclose(values, ((points - minimum) ** 2).sum(axis=1), rtol=1e-12)
assert cyxla.error_info().count == 0
""",
    )


def test_failures_on_its_threads_are_reported(site: Path) -> None:
    run_with_modules(
        site,
        _PRELUDE
        + """
def refused(error, text, call):
    try:
        call()
    except error as caught:
        assert text in str(caught), caught
        return
    raise AssertionError("accepted")

single = build(np.float32)
descend = lambda executable, points: minima.descend(executable, points, 0.1, 9)
refused(RuntimeError, "input 0 of the program", lambda: descend(single, starts))
refused(RuntimeError, "must have element type F32 (11)", lambda: descend(single, starts))
refused(ValueError, "must be one double", lambda: minima.evaluate(single, starts, 2))
refused(ValueError, "takes 5 numbers", lambda: descend(function, starts[:, :4].copy()))
refused(TypeError, "expected a cyxla.Executable, got int", lambda: descend(3, starts))
assert cyxla.error_info().count == 2 * len(starts)
np.testing.assert_array_equal(minima.descend(function, starts, 0.1, 0), starts)
""",
    )


def test_it_is_refused_when_it_was_built_against_another_abi_version(tmp_path: Path) -> None:
    # The other version has another struct too, which Cython does not notice. Building needs neither
    # the extension module, which its package lacks, nor jax, which cannot be imported.
    own = _runtime.ABI_VERSION
    other = tmp_path / "other"
    package = Path(cyxla.get_include()[1], "cyxla")
    shutil.copytree(package, other / "cyxla", ignore=shutil.ignore_patterns("_runtime*.so"))
    header = other / "cyxla" / "include" / "cyxla" / "cyxla.h"
    version = f"#define CYXLA_ABI_VERSION {own}\n"
    field = "  uint32_t flags;"
    text = header.read_text()
    assert text.count(version) == 1
    assert text.count(field) == 1
    text = text.replace(version, f"#define CYXLA_ABI_VERSION {own + 1}\n")
    header.write_text(text.replace(field, f"  uint64_t another_field;\n{field}"))
    for name in ("jax", "jaxlib"):
        (other / f"{name}.py").write_text(f"raise ImportError('{name} is not installed')\n")

    search = os.pathsep.join(filter(None, [str(other), os.environ.get("PYTHONPATH")]))
    site = install(tmp_path, env={"PYTHONPATH": search})
    printed = run_with_modules(
        site,
        """
        import cyxla
        for module in ("minima", "minima.descent", "minima.evaluation"):
            try:
                __import__(module)
            except cyxla.AbiError as error:
                assert isinstance(error, ImportError)
                print(error)
        """,
    )
    expected = (
        f"the module was compiled against ABI version {own + 1} of cyxla, the installed"
        f" cyxla has {own}: rebuild the module against the installed cyxla"
    )
    assert printed.count(expected) == 3, printed
