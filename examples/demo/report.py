# SPDX-License-Identifier: Apache-2.0
"""Prints the setting, the minima of the solvers, and the time of a call."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from model import OPTIMUM, Minimum

import cyxla as cx

JAX_CALL = "jax.jit, from Python"

_DISTRIBUTIONS = ("jax", "jaxlib", "numpy", "scipy", "cython")


def print_setting(program: cx.Program, compiled: cx.CompileStatistics, library: cx.Library) -> None:
    """Print versions, machine, plugin, program and library."""
    info = cx.runtime_info()
    version = ".".join(map(str, info.api_version))
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _DISTRIBUTIONS)
    in_place = "yes" if info.aliased_inputs else "no"
    size_bytes, seconds = compiled.program_bytes, compiled.seconds
    print()
    print(f"Versions   cyxla {cx.__version__}, Python {platform.python_version()}, {versions}")
    print(f"Machine    {_processor()}, {os.cpu_count()} CPUs")
    print(f"Plugin     {info.plugin.source}, {info.plugin.path}")
    print(f"           platform {info.platform}, PJRT API {version}, inputs in place: {in_place}")
    print(f"Program    {size_bytes} bytes of StableHLO {program.stablehlo_version}", end="")
    print(f", compiled in {seconds:.2f} s")
    for side, arrays in (("takes", program.inputs), ("returns", program.outputs)):
        for array in arrays:
            shape = " x ".join(map(str, array.shape)) or "scalar"
            print(f"           {side:8} {array.name:11} {array.dtype.name:8} {shape}")
    needed = ", ".join(library.undefined_symbols) or "nothing"
    print(f"C library  {library.path}, {library.size_bytes} bytes; it needs {needed}")


def print_minima(minima: Mapping[str, Minimum]) -> None:
    """Print the minimum of each solver and its distance from the known one."""
    print()
    print(f"{'Minimum':<30}{'value':>12}{'off by':>12}{'evaluations':>14}")
    for way, (value, evaluations) in minima.items():
        print(f"{way:<30}{value:>12.6f}{abs(value - OPTIMUM):>12.1e}{evaluations:>14}")


def print_times(times: Mapping[str, list[float]]) -> None:
    """Print the time of a call, and the ratio of `jax.jit` to it within a round."""
    of_jax = times[JAX_CALL]
    print()
    print(f"{'Value and gradient, once':<30}{'median':>11}{'best tenth':>13}", end="")
    print(f"{'calls a second':>17}{'jax.jit takes':>17}")
    for way, own in times.items():
        median, fast = statistics.median(own), statistics.quantiles(own, n=10)[0]
        ratio = statistics.median(a / b for a, b in zip(of_jax, own, strict=True))
        print(f"{way:<30}{median * 1e6:>8.1f} us{fast * 1e6:>10.1f} us", end="")
        print(f"{1 / median:>17,.0f}{ratio:>11.1f} times")
    print(f"From {len(of_jax)} interleaved rounds. On a thread: the time of a whole minimisation,")
    print("with starting the thread and copying the data, divided by its evaluations.")


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    for line in file.read_text().splitlines() if file.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
