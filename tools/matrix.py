# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of tests/matrix on every JAX with every CPU plugin, beside `jax.jit`.

    python3 tools/matrix.py                       # all cells, and docs/matrix.md anew
    python3 tools/matrix.py --brief 0.12.0.1      # fewer programs on one JAX: what CI runs

Each JAX gets an environment in build/, unless that of the tests has it already. A cell is a process
with a time limit: what makes it crash or hang is that cell's failure. Programs that the oldest JAX
lowered are also run beside the newest, and the other way round. It exits with 1 when a program
fails in any cell.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

from environment import (
    environment_folder,
    make_bare_environment,
    make_environment,
    pip_variables,
    requirements as listed_requirements,
)
from package import install_wheel, sources_digest
from pythons import find_pythons
from steps import BUILD, ROOT, StepError, digest, is_done, mark_done, run, say, step

# The versions of JAX, and the Python that each is tested with.
ROWS = {"0.10.2": "3.11", "0.11.2": "3.12", "0.12.0.1": "3.12"}
# The distributions with a CPU plugin, and the plugin's library; the PJRT API is in the docs.
PLUGINS = {
    "lammps-jax-pjrt-cpu": "pjrt_c_api_cpu_plugin.so",
    "fastatomstruct-xla-cpu": "libpjrt_cpu.so",
    "xla-cpu-pjrt": "xla_cpu_pjrt.so",
}
CELL = ROOT / "tests" / "matrix" / "cell.py"
PAGE = ROOT / "docs" / "matrix.md"
CELL_SECONDS = 900

# What is wrong with each program; empty for one that is right.
Cell: TypeAlias = Mapping[str, str]
_FIND = """
import sys, cyxla
print(next(found.path for found in cyxla.available_plugins() if found.path.name == sys.argv[1]))
"""


def run_cell(
    python: str | Path,
    task: str,
    folder: Path,
    library: str | None = None,
    *,
    brief: bool,
    seconds: float = CELL_SECONDS,
) -> Cell:
    """Run cell.py for a task in a process, with the plugin of this file name; return its faults.

    Programs that it did not get to have failed with what ended the process.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _UNSET}
    environment["JAX_PLATFORMS"] = "cpu"
    if library is not None:
        environment["CYXLA_PJRT_PLUGIN"] = _output([python, "-c", _FIND, library], environment)
    command = [str(python), str(CELL), task, str(folder), *(["--brief"] if brief else [])]
    try:
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
        how, printed, errors = f"exit status {ended.returncode}", ended.stdout, ended.stderr
        is_complete = ended.returncode == 0
    except subprocess.TimeoutExpired as expired:
        how, is_complete, errors = f"not ended after {seconds:.0f} s", False, ""
        printed = (expired.stdout or b"").decode()
    faults: dict[str, str] = {}
    for line in printed.splitlines():
        if line.startswith("{") and line.endswith("}"):
            entry = json.loads(line)
            faults[entry.get("starts") or entry["name"]] = entry.get("fault", f"the process: {how}")
    if not is_complete:
        faults["the whole cell"] = f"{how} {errors[-1000:]}".strip()
    return faults


# Variables of the caller that would change what a cell tests.
_UNSET = ("CYXLA_DIRECT", "CYXLA_NUM_THREADS", "CYXLA_PJRT_PLUGIN", "CYXLA_PLATFORM", "XLA_FLAGS")


def lower_programs(python: str | Path, folder: Path, *, brief: bool) -> Cell:
    """Lower the programs with the JAX of `python` into a new folder; return those that failed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lowered = run_cell(python, "lower", folder, brief=brief)
    return {name: fault for name, fault in lowered.items() if fault}


def run_row(python: str | Path, folder: Path, *, brief: bool) -> dict[str, Cell]:
    """Lower the programs with the JAX of `python`, and run them with each plugin.

    The folder keeps what was lowered. A program that cannot be lowered fails in every cell.
    """
    unlowered = lower_programs(python, folder, brief=brief)

    def one(library: str) -> Cell:
        return run_cell(python, "run", folder, library, brief=brief)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cells = pool.map(one, PLUGINS.values())
        return {name: {**unlowered, **cell} for name, cell in zip(PLUGINS, cells, strict=True)}


def holes(cells: Mapping[str, Cell]) -> list[str]:
    """A line for each program that fails in one of the cells."""
    return [
        f"{column}: {name}: {fault}"
        for column, cell in cells.items()
        for name, fault in cell.items()
        if fault
    ]


def row_python(jax: str) -> Path:
    """Return the interpreter of an environment with this JAX, the plugins and cyxla in it."""
    version = ROWS[jax]
    interpreter = find_pythons().found.get(version)
    if interpreter is None:
        raise StepError(f"JAX {jax} needs Python {version}; name one in CYXLA_TEST_PYTHONS")
    tests = make_environment(version, interpreter, "test")
    install_wheel(version, tests)
    if _output([tests, "-c", "import jaxlib; print(jaxlib.__version__)"]) == jax:
        return tests
    name = f"jax-{jax}"
    python = make_bare_environment(name, interpreter)
    plugins = [
        wanted
        for wanted in listed_requirements(["cpu", "test"])
        if wanted.partition("==")[0] in PLUGINS
    ]
    own = [f"jax=={jax}", f"jaxlib=={jax}", "numpy", "ml_dtypes", "scipy", "tqdm"]
    stamps = environment_folder(name) / "cyxla-stamps"
    if not is_done(stamps / "row", digest([*own, *plugins])):
        with step(f"installing JAX {jax} and the plugins"):
            run([python, "-m", "pip", "install", *own], env=pip_variables())
            # One plugin's package asks for an older JAX, which the library does not.
            run([python, "-m", "pip", "install", "--no-deps", *plugins], env=pip_variables())
            mark_done(stamps / "row", digest([*own, *plugins]))
    if not is_done(stamps / "wheel", sources_digest()):
        wheel = next((BUILD / "dist" / version).glob("cyxla-*.whl"))
        pip: list[str | Path] = [python, "-m", "pip", "install", "--force-reinstall", "--no-deps"]
        run([*pip, wheel], env=pip_variables())
        mark_done(stamps / "wheel", sources_digest())
    return python


def _output(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> str:
    ended = subprocess.run(
        [str(word) for word in command],
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if ended.returncode != 0:
        raise StepError(f"{command[0]} exited with status {ended.returncode}: {ended.stderr}")
    return ended.stdout.strip()


def summary(rows: Mapping[str, Mapping[str, Cell]]) -> list[str]:
    """The table of how many programs of how many are right, in Markdown."""
    lines = ["| JAX | " + " | ".join(PLUGINS) + " |", "|---" * (len(PLUGINS) + 1) + "|"]
    for jax, cells in rows.items():
        counts = [f"{right(cells[plugin])} of {len(cells[plugin])}" for plugin in PLUGINS]
        lines.append(f"| {jax} | " + " | ".join(counts) + " |")
    return lines


def right(cell: Cell) -> int:
    """Return how many programs of a cell are right."""
    return sum(not fault for fault in cell.values())


def page(rows: Mapping[str, Mapping[str, Cell]], crossed: Mapping[str, Cell], command: str) -> str:
    """The text of docs/matrix.md, as written by a command."""
    plugins = [
        wanted.replace("==", " ")
        for wanted in listed_requirements(["cpu", "test"])
        if wanted.partition("==")[0] in PLUGINS
    ]
    lines = [
        "# Any JAX with any plugin",
        "",
        f"Generated by `{command}`: programs lowered by each version of JAX, compiled by each CPU",
        f"plugin ({', '.join(sorted(plugins))}), and compared with `jax.jit` of the same JAX:",
        "1e-5 of an output's largest value in single precision, 1e-10 in double; integers exactly.",
        "In half precision it is four of the type's epsilon.",
        "",
        "A cell is a process with one JAX and one plugin. The page is written after a run of all",
        "cells; `make test` runs the brief set (`tests/matrix/programs.py`) with the newest JAX",
        "and with the JAX of each interpreter that it finds.",
        "",
        *summary(rows),
        "",
        "Programs lowered by one JAX, saved to a file, and run beside another JAX, with the",
        "default plugin. Those that call Python are left out: they cannot be saved.",
        "",
        "| lowered by | run beside | right |",
        "|---|---|---|",
        *(f"| {name} | {right(cell)} of {len(cell)} |" for name, cell in crossed.items()),
        "",
        "## Programs",
        "",
        f"Each in {len(rows) * len(PLUGINS)} cells.",
        "",
        "| program | cells in which it is right |",
        "|---|---|",
    ]
    cells = [cell for row in rows.values() for cell in row.values()]
    for name in dict.fromkeys(name for cell in cells for name in cell):
        count = sum(not cell.get(name, "missing") for cell in cells)
        lines.append(f"| {name} | {count} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Run the rows named, all without a name; return 1 when a program failed in a cell."""
    parser = argparse.ArgumentParser(description="Runs programs on every JAX with every plugin.")
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], help="versions of JAX")
    parser.add_argument("--brief", action="store_true", help="fewer programs")
    arguments = parser.parse_args()
    rows, crossed, pythons = dict[str, dict[str, Cell]](), dict[str, Cell](), dict[str, Path]()
    try:
        for jax in arguments.rows or ROWS:
            pythons[jax] = row_python(jax)
            with step(f"the programs of JAX {jax}"):
                rows[jax] = run_row(pythons[jax], _folder(jax), brief=arguments.brief)
        if len(rows) == len(ROWS):
            oldest, *_, newest = ROWS
            for first, second in ((oldest, newest), (newest, oldest)):
                with step(f"programs of JAX {first} beside JAX {second}"):
                    crossed[f"{first} | {second}"] = run_cell(
                        pythons[second],
                        "run-foreign",
                        _folder(first),
                        next(iter(PLUGINS.values())),
                        brief=arguments.brief,
                    )
    except StepError as error:
        say(f"error: {error}")
        return 1
    faults = [
        line for jax, cells in rows.items() for line in map(f"{jax}, {{}}".format, holes(cells))
    ]
    faults += holes(crossed)
    for line in (*faults, *summary(rows)):
        say(line)
    if crossed:
        command = "make matrix ARGS=--brief" if arguments.brief else "make matrix"
        PAGE.write_text(page(rows, crossed, command))
    return 1 if faults else 0


def _folder(jax: str) -> Path:
    return BUILD / "matrix" / jax


if __name__ == "__main__":
    sys.exit(main())
