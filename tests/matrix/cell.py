# SPDX-License-Identifier: Apache-2.0
"""Lowers the programs of the table, or compares what a plugin computes of them with `jax.jit`.

    python cell.py lower FOLDER    # writes each program, its inputs and jax.jit's results
    python cell.py run FOLDER      # runs them with the plugin of this process

Both print a JSON object before and after each program, so that a process that ends early tells
where. The folder may be from another JAX: then the programs that call Python are left out, as they
hold functions of the process that lowered them.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / "matrix"), str(_TESTS / "python")]

import jax  # noqa: E402
from callback_programs import CALLBACKS, SEEN  # noqa: E402
from programs import PROGRAMS, TOLERANCES, MatrixProgram  # noqa: E402

import cyxla  # noqa: E402

# The first lines of a message say what went wrong.
_MESSAGE_CHARACTERS = 400


def arguments_of(name: str, program: MatrixProgram) -> list[Any]:
    """The arguments of a program, the same each time."""
    return program.arguments(np.random.default_rng(len(name)))


def lowered(program: MatrixProgram, arguments: Sequence[Any]) -> cyxla.Program:
    """The program for the CPU."""
    specifications = jax.tree.map(
        lambda array: jax.ShapeDtypeStruct(np.shape(array), array.dtype), list(arguments)
    )
    return cyxla.lower(program.function, specifications, platform="cpu")


def reference(program: MatrixProgram, arguments: Sequence[Any]) -> list[Any]:
    """What `jax.jit` returns, leaf by leaf."""
    leaves = jax.tree.leaves(list(arguments))
    is_wide = any(
        leaf.dtype.name in ("float64", "int64", "uint64", "complex128") for leaf in leaves
    )
    with jax.enable_x64(is_wide):
        results = jax.jit(program.function)(*arguments)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def watched(call: Callable[[], list[Any]]) -> tuple[list[Any], list[Any]]:
    """What the call returns, and what its callbacks and prints showed."""
    SEEN.clear()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        results = call()
        jax.effects_barrier()
    return results, [*SEEN, *printed.getvalue().splitlines()]


def difference(got: Sequence[Any], wanted: Sequence[Any], tolerance: float | None) -> str:
    """What is wrong with the results; empty when nothing is."""
    if len(got) != len(wanted):
        return f"{len(got)} outputs instead of {len(wanted)}"
    for index, (array, right) in enumerate(zip(got, wanted, strict=True)):
        if (array.dtype, array.shape) != (right.dtype, right.shape):
            return f"output {index} is {array.dtype}{array.shape}, not {right.dtype}{right.shape}"
        allowed = TOLERANCES.get(right.dtype.name, 0.0) if tolerance is None else tolerance
        if not allowed or right.dtype.kind in "biu":
            if not np.array_equal(array, right):
                return f"output {index} differs in {int((array != right).sum())} of {right.size}"
            continue
        wide = np.complex128 if right.dtype.kind == "c" else np.float64
        array, right = array.astype(wide), right.astype(wide)
        finite = np.abs(right[np.isfinite(right)])
        scale = float(finite.max(initial=0))
        if not np.allclose(array, right, rtol=allowed, atol=allowed * scale, equal_nan=True):
            worst = float(np.nanmax(np.abs(array - right))) / (scale or 1)
            return f"output {index} differs by {worst:.1e} of its largest value"
    return ""


def lower_all(folder: Path) -> None:
    """Write the programs that need no Python, and what `jax.jit` gives for each."""
    for index, (name, program) in enumerate(PROGRAMS.items()):
        if name in CALLBACKS:
            continue
        announce(name)
        try:
            arguments = arguments_of(name, program)
            saved = lowered(program, arguments)
            inputs = jax.tree.leaves(arguments)
            entry = (name, saved, inputs, reference(program, arguments), program.tolerance)
            (folder / f"{index}.pickle").write_bytes(pickle.dumps(entry))
            report(name, "")
        except Exception as error:
            report(name, f"{type(error).__name__}: {error}")


def run_all(folder: Path, is_own: bool) -> None:
    """Run what the folder holds, then the programs that call Python."""
    for path in sorted(folder.glob("*.pickle"), key=lambda path: int(path.stem)):
        name, program, inputs, wanted, tolerance = pickle.loads(path.read_bytes())
        announce(name)
        try:
            executable, _ = cyxla.compile_program(program)
            report(name, difference(executable.run(inputs), wanted, tolerance))
        except Exception as error:
            report(name, f"{type(error).__name__}: {error}")
    for name in CALLBACKS if is_own else ():
        announce(name)
        try:
            report(name, callback_difference(name, PROGRAMS[name]))
        except Exception as error:
            report(name, f"{type(error).__name__}: {error}")


def callback_difference(name: str, program: MatrixProgram) -> str:
    """What a program that calls Python does otherwise than under `jax.jit`."""
    arguments = arguments_of(name, program)
    executable, _ = cyxla.compile_program(lowered(program, arguments))
    inputs = jax.tree.leaves(arguments)
    wanted, wanted_effects = watched(lambda: reference(program, arguments))
    for _ in range(2):
        got, effects = watched(lambda: list(executable.run(inputs)))
        if effects != wanted_effects:
            return f"its callbacks saw {effects}, not {wanted_effects}"
        if fault := difference(got, wanted, program.tolerance):
            return fault
    return ""


def announce(name: str) -> None:
    print(json.dumps({"starts": name}), flush=True)


def report(name: str, fault: str) -> None:
    print(json.dumps({"name": name, "fault": fault[:_MESSAGE_CHARACTERS]}), flush=True)


def main() -> None:
    """Do what the command line says."""
    np.seterr(all="ignore")
    task, folder = sys.argv[1], Path(sys.argv[2])
    if task == "lower":
        lower_all(folder)
    else:
        run_all(folder, is_own="--foreign" not in sys.argv)


if __name__ == "__main__":
    main()
