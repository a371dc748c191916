# SPDX-License-Identifier: Apache-2.0
"""Lowers the programs of the table, or compares a plugin's results of them with `jax.jit`.

    python cell.py lower FOLDER        # saves each program, and its inputs and jax.jit's results
    python cell.py run FOLDER          # runs them with the plugin of this process
    python cell.py run-foreign FOLDER  # the same with programs that another JAX lowered

All print a JSON object before and after each program, which shows where a process ended early.
`--brief` selects the brief set. Programs that call Python are lowered where they run, because they
hold functions of their process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / "matrix"), str(_TESTS / "python")]

import jax  # noqa: E402
from programs import BRIEF, PROGRAMS  # noqa: E402

import cyxla  # noqa: E402
from support.programs.callbacks import SEEN  # noqa: E402
from support.programs.check import (  # noqa: E402
    Difference,
    arguments_of,
    compare,
    lowered,
    reference,
)
from support.programs.entry import Program  # noqa: E402

_MESSAGE_CHARACTERS = 400


def watched(call: Callable[[], list[Any]]) -> tuple[list[Any], list[Any]]:
    """The results of the call, and what its callbacks and prints showed."""
    SEEN.clear()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        results = call()
        jax.effects_barrier()
    return results, [*SEEN, *printed.getvalue().splitlines()]


def lower_all(folder: Path, programs: Mapping[str, Program]) -> None:
    """Write the programs that do not call Python, and the results of `jax.jit`."""
    names = [name for name in programs if "callback" not in programs[name].tags]

    def lower_one(index: int) -> None:
        name = names[index]
        program = programs[name]
        announce(name)
        with reporting(name):
            arguments = arguments_of(name, program)
            inputs = jax.tree.leaves(arguments)
            wanted = reference(program, arguments)
            lowered(program, arguments).save(folder / f"{index}.cyxla")
            (folder / f"{index}.pickle").write_bytes(pickle.dumps((name, inputs, wanted)))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lower_one, range(len(names))))


@contextlib.contextmanager
def reporting(name: str) -> Iterator[None]:
    """Print the outcome of a program: the exception, if the block raises one."""
    fault = ""
    try:
        yield
    except Exception as error:  # the next program may work
        fault = f"{type(error).__name__}: {error}"
    tell({"name": name, "fault": fault[:_MESSAGE_CHARACTERS]})


def run_all(folder: Path, programs: Mapping[str, Program]) -> None:
    """Run the programs of the folder, then those of `programs` that call Python."""
    for path in sorted(folder.glob("*.pickle"), key=lambda path: int(path.stem)):
        name, inputs, wanted = pickle.loads(path.read_bytes())
        announce(name)
        with reporting(name):
            executable, _ = cyxla.compile_program(cyxla.Program.load(path.with_suffix(".cyxla")))
            compare(executable.run(inputs), wanted)
    for name, program in programs.items():
        if "callback" in program.tags:
            announce(name)
            with reporting(name):
                compare_callbacks(name, program)


def compare_callbacks(name: str, program: Program) -> None:
    """Raise Difference unless a program that calls Python acts as under `jax.jit`."""
    arguments = arguments_of(name, program)
    executable, _ = cyxla.compile_program(lowered(program, arguments))
    inputs = jax.tree.leaves(arguments)
    wanted, wanted_effects = watched(lambda: reference(program, arguments))
    for _ in range(2):
        got, effects = watched(lambda: list(executable.run(inputs)))
        if effects != wanted_effects:
            raise Difference(f"its callbacks saw {effects}, not {wanted_effects}")
        compare(got, wanted)


def announce(name: str) -> None:
    tell({"starts": name})


def tell(entry: dict[str, str]) -> None:
    """Print a line in one write: programs are lowered on several threads."""
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()


def main() -> None:
    np.seterr(all="ignore")
    warnings.simplefilter("ignore", cyxla.LargeConstantsWarning)
    task, folder = sys.argv[1], Path(sys.argv[2])
    programs = BRIEF if "--brief" in sys.argv else PROGRAMS
    if task == "lower":
        lower_all(folder, programs)
    else:
        run_all(folder, programs if task == "run" else {})


if __name__ == "__main__":
    main()
