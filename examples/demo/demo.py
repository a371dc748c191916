# SPDX-License-Identifier: Apache-2.0
"""Fits a logistic regression with C++ and Cython solvers that call a JAX objective.

    python examples/demo/demo.py [--build-folder FOLDER] [--seconds SECONDS]

The demo lowers and compiles the objective and its gradient, runs them from Python, builds the two
solver modules with Meson and a C library of the objective, and prints each solver's minimum and the
time of a call beside `jax.jit`. It fails if a minimum is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from model import OPTIMUM, Array, Data, Minimum, load_data, numpy_objective, objective, start
from progress import step
from report import JAX_CALL, print_minima, print_setting, print_times

import cyxla as cx

MAX_DIFFERENCE = 1e-5


def compile_objective(data: Data) -> tuple[cx.Program, cx.Executable, cx.CompileStatistics]:
    """Lower and compile the objective's value and gradient for the shapes of the data."""
    arguments = [jax.ShapeDtypeStruct(array.shape, jnp.float64) for array in (start(), *data)]
    program = cx.lower(jax.value_and_grad(objective), arguments, name="fit")
    executable, compiled = cx.compile_program(program)
    return program, executable, compiled


def build_solvers(folder: Path, show: Callable[[str], None]) -> tuple[Any, Any]:
    """Build both modules from scratch with Meson and import them."""
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    setup = [*meson, "setup", folder, Path(__file__).parent]
    if (folder / "meson-private").is_dir():
        setup.append("--wipe")
    run(setup, show)
    run([*meson, "compile", "-C", folder], show)
    sys.path.insert(0, str(folder))
    return importlib.import_module("solver_cpp"), importlib.import_module("solver_cython")


def c_function(library: cx.Library, data: Data) -> Callable[[Array], tuple[float, Array]]:
    """Return the objective of the C library, behind which there is neither cyxla nor JAX."""
    fit = ctypes.CDLL(str(library.path)).fit
    fit.argtypes, fit.restype = [ctypes.c_void_p] * 5, None
    value, gradient = ctypes.c_double(), np.empty(start().shape)
    fixed = [array.ctypes.data for array in data]
    results = [ctypes.addressof(value), gradient.ctypes.data]

    def call(point: Array) -> tuple[float, Array]:
        fit(point.ctypes.data, *fixed, *results)
        return value.value, gradient.copy()

    return call


def run(command: list[Any], show: Callable[[str], None]) -> None:
    """Run a command and show its latest line; if it fails, exit with all of its output."""
    # Meson takes the first Cython and Ninja on PATH; use those of this interpreter.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    process = subprocess.Popen(
        [str(word) for word in command],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        show(line.strip())
    if process.wait() != 0:
        raise SystemExit(f"{''.join(lines)}error: meson {command[3]} failed")


def minimize_with_scipy(function: Callable[[Array], tuple[Any, ...]]) -> Minimum:
    """Minimise a function that returns value and gradient, with SciPy."""
    tolerances = {"ftol": 1e-14, "gtol": 1e-8}
    found = scipy.optimize.minimize(
        function, start(), jac=True, method="L-BFGS-B", options=tolerances
    )
    return Minimum(float(found.fun), int(found.nfev))


def minimize_with(solver: Any, executable: cx.Executable, data: Data) -> Minimum:
    """Minimise with one of the native modules."""
    return Minimum(*solver.minimize(executable, start(), *data))


def find_minima(
    executable: cx.Executable, data: Data, solvers: tuple[Any, Any], library: cx.Library
) -> dict[str, Minimum]:
    """Minimise in five ways."""
    in_c = c_function(library, data)
    solver_cpp, solver_cython = solvers
    return {
        "SciPy, objective in NumPy": minimize_with_scipy(lambda x: numpy_objective(x, data)),
        "SciPy, Executable.run": minimize_with_scipy(lambda x: executable.run([x, *data])),
        "SciPy, C library": minimize_with_scipy(in_c),
        "C++ on a std::thread": minimize_with(solver_cpp, executable, data),
        "Cython on a std::thread": minimize_with(solver_cython, executable, data),
    }


def measure(
    executable: cx.Executable,
    data: Data,
    solvers: tuple[Any, Any],
    library: cx.Library,
    seconds: float,
    show: Callable[[str], None],
) -> dict[str, list[float]]:
    """Return the seconds per call of each way of calling, one entry per round.

    The ways take turns so that the load of the machine affects all of them alike. For the native
    solvers it is the time of a whole minimisation, including the thread and the copies of the data,
    divided by its evaluations.
    """
    jitted = jax.jit(jax.value_and_grad(objective))
    device_data = [jnp.asarray(array) for array in data]
    point = start()
    bound = executable.bind([point, *data])
    in_c = c_function(library, data)

    def call_jax() -> tuple[float, Array]:
        value, gradient = jitted(point, *device_data)
        return float(value), np.asarray(gradient)

    def repeated(function: Callable[[], object], count: int = 100) -> Callable[[], float]:
        def one_call() -> float:
            begin = time.perf_counter()
            for _ in range(count):
                function()
            return (time.perf_counter() - begin) / count

        return one_call

    def solved(solver: Any) -> Callable[[], float]:
        def one_call() -> float:
            begin = time.perf_counter()
            minimum = minimize_with(solver, executable, data)
            return (time.perf_counter() - begin) / minimum.evaluations

        return one_call

    ways = {
        JAX_CALL: repeated(call_jax),
        "Executable.run, from Python": repeated(lambda: executable.run([point, *data])),
        "Executable.bind, from Python": repeated(bound),
        "C library, from Python": repeated(lambda: in_c(point)),
        "C++ on a std::thread": solved(solvers[0]),
        "Cython on a std::thread": solved(solvers[1]),
    }
    for one_call in ways.values():
        one_call()
    times: dict[str, list[float]] = {way: [] for way in ways}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for way, one_call in ways.items():
            times[way].append(one_call())
        show(f"round {len(times[JAX_CALL])}")
    return times


def main() -> int:
    """Run the demo; return 1 if a minimum is wrong."""
    parser = argparse.ArgumentParser(description="Fits a model from C++ and Cython threads.")
    folder = Path("build", f"demo-{sys.version_info[0]}.{sys.version_info[1]}")
    parser.add_argument("--build-folder", type=Path, default=folder, help=f"default: {folder}")
    parser.add_argument("--seconds", type=float, default=10.0, help="time for the measurement")
    arguments = parser.parse_args()

    jax.config.update("jax_enable_x64", True)  # for jax.jit; cyxla uses the declared dtypes
    with step("reading the table"):
        data = load_data()
    with step("lowering and compiling the objective"):
        program, executable, compiled = compile_objective(data)
    with step("building the C++ and the Cython module") as show:
        solvers = build_solvers(arguments.build_folder.absolute(), show)
    with step("building a C library of the objective"):
        library = cx.build_library(program, arguments.build_folder / "libfit.so")
    with step("minimising"):
        minima = find_minima(executable, data, solvers, library)
    with step("measuring calls") as show:
        times = measure(executable, data, solvers, library, arguments.seconds, show)
    print_setting(program, compiled, library)
    print_minima(minima)
    print_times(times)
    wrong = [
        way for way, found in minima.items() if not abs(found.value - OPTIMUM) <= MAX_DIFFERENCE
    ]
    for way in wrong:
        print(f"error: {way} did not reach the minimum {OPTIMUM} within {MAX_DIFFERENCE}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
