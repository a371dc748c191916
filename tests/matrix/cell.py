# SPDX-License-Identifier: Apache-2.0
"""Lowers the programs of the table, or compares what a plugin computes of them with `jax.jit`.

    python cell.py lower FOLDER        # saves each program, and its inputs and jax.jit's results
    python cell.py run FOLDER          # runs them with the plugin of this process
    python cell.py run-foreign FOLDER  # the same with programs that another JAX lowered

All print a JSON object before and after each program, so that a process that ends early tells
where. `--brief` leaves out what not every run can afford. The programs that call Python are lowered
where they are run, as they hold functions of their process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / "matrix"), str(_TESTS / "python")]

import jax  # noqa: E402
from callback_programs import CALLBACKS, SEEN  # noqa: E402
from programs import BRIEF, PROGRAMS, TOLERANCES, MatrixProgram  # noqa: E402

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


class Difference(Exception):
    """What is wrong with results."""


def compare(got: Sequence[Any], wanted: Sequence[Any], tolerance: float | None) -> None:
    """Raise Difference unless the results agree within the tolerance, else that of their type."""
    if len(got) != len(wanted):
        raise Difference(f"{len(got)} outputs instead of {len(wanted)}")
    for index, (array, right) in enumerate(zip(got, wanted, strict=True)):
        if (array.dtype, array.shape) != (right.dtype, right.shape):
            raise Difference(
                f"output {index} is {array.dtype}{array.shape}, not {right.dtype}{right.shape}"
            )
        allowed = TOLERANCES.get(right.dtype.name, 0.0) if tolerance is None else tolerance
        if not allowed or right.dtype.kind in "biu":
            if not np.array_equal(array, right):
                count = int((array != right).sum())
                raise Difference(f"output {index} differs in {count} of {right.size}")
            continue
        wide = np.complex128 if right.dtype.kind == "c" else np.float64
        array, right = array.astype(wide), right.astype(wide)
        finite = np.abs(right[np.isfinite(right)])
        scale = float(finite.max(initial=0))
        if not np.allclose(array, right, rtol=allowed, atol=allowed * scale, equal_nan=True):
            worst = float(np.nanmax(np.abs(array - right))) / (scale or 1)
            raise Difference(f"output {index} differs by {worst:.1e} of its largest value")


def lower_all(folder: Path, programs: Mapping[str, MatrixProgram]) -> None:
    """Write the programs that need no Python, and what `jax.jit` gives for each."""
    names = [name for name in programs if name not in CALLBACKS]

    def lower_one(index: int) -> None:
        name = names[index]
        program = programs[name]
        announce(name)
        with reporting(name):
            arguments = arguments_of(name, program)
            inputs = jax.tree.leaves(arguments)
            wanted = reference(program, arguments)
            lowered(program, arguments).save(folder / f"{index}.cyxla")
            entry = (name, inputs, wanted, program.tolerance)
            (folder / f"{index}.pickle").write_bytes(pickle.dumps(entry))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lower_one, range(len(names))))


@contextlib.contextmanager
def reporting(name: str) -> Iterator[None]:
    """Print what became of a program: the exception, if the block raises one."""
    fault = ""
    try:
        yield
    except Exception as error:  # the next program may work
        fault = f"{type(error).__name__}: {error}"
    tell({"name": name, "fault": fault[:_MESSAGE_CHARACTERS]})


def run_all(folder: Path, callbacks: Iterable[str]) -> None:
    """Run what the folder holds, then these programs that call Python."""
    for path in sorted(folder.glob("*.pickle"), key=lambda path: int(path.stem)):
        name, inputs, wanted, tolerance = pickle.loads(path.read_bytes())
        announce(name)
        with reporting(name):
            program = cyxla.Program.load(path.with_suffix(".cyxla"))
            executable, _ = cyxla.compile_program(program)
            compare(executable.run(inputs), wanted, tolerance)
    for name in callbacks:
        announce(name)
        with reporting(name):
            compare_callbacks(name, PROGRAMS[name])


def compare_callbacks(name: str, program: MatrixProgram) -> None:
    """Raise Difference where a program that calls Python does otherwise than under `jax.jit`."""
    arguments = arguments_of(name, program)
    executable, _ = cyxla.compile_program(lowered(program, arguments))
    inputs = jax.tree.leaves(arguments)
    wanted, wanted_effects = watched(lambda: reference(program, arguments))
    for _ in range(2):
        got, effects = watched(lambda: list(executable.run(inputs)))
        if effects != wanted_effects:
            raise Difference(f"its callbacks saw {effects}, not {wanted_effects}")
        compare(got, wanted, program.tolerance)


def announce(name: str) -> None:
    tell({"starts": name})


def tell(entry: dict[str, str]) -> None:
    """Print a line in one piece: programs are lowered on several threads."""
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Do what the command line says."""
    np.seterr(all="ignore")
    warnings.simplefilter("ignore", cyxla.LargeConstantsWarning)
    task, folder = sys.argv[1], Path(sys.argv[2])
    programs = BRIEF if "--brief" in sys.argv else PROGRAMS
    if task == "lower":
        lower_all(folder, programs)
    else:
        run_all(folder, CALLBACKS if task == "run" else ())


if __name__ == "__main__":
    main()
