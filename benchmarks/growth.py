# SPDX-License-Identifier: Apache-2.0
"""Measures how the cost of a call grows with the inputs, their size and the threads."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

from case import Case
from loops import NativeLoop, seconds_on_threads
from measure import Effort, Measurement, find_fault, measure, quartiles, sample_rounds
from progress import Progress
from rivals import NotApplicableError, Rival
from rivals.bare_loop import BareProgram, bare_loop
from rivals.cyxla_native import compile_case, execute_loop
from tasks import Task, task_named, task_of_inputs, task_of_size

INPUT_COUNTS = (1, 2, 4, 8, 16, 32, 64)
SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
THREADS = (1, 2, 4)
_INPUT_RIVALS = (
    "cyxla-execute", "cyxla-execute-moving", "cyxla-run", "cyxla-execute-pjrt",
    "cyxla-execute-copy-pjrt", "cyxla-execute-moving-pjrt", "cyxla-run-pjrt",
    "bare-kept", "bare-fresh-views", "bare-copies", "jax-jit", "jax-aot",
)  # fmt: skip
_SIZE_RIVALS = (
    "cyxla-execute", "cyxla-run", "cyxla-execute-pjrt", "cyxla-execute-in-place-pjrt",
    "cyxla-execute-copy-pjrt", "cyxla-execute-moving-pjrt", "cyxla-run-pjrt",
    "bare-kept", "jax-jit", "jax-device", "hand-c",
)  # fmt: skip
_THREAD_TASKS = ("sin-3", "mlp")


def _series(
    tasks: Sequence[Task],
    names: Sequence[str],
    rivals: Sequence[Rival],
    effort: Effort,
    shuffler: random.Random,
    progress: Progress,
) -> list[tuple[Task, list[Measurement]]]:
    chosen = [rival for rival in rivals if rival.name in names]
    return [
        (task, measure(Case(task), chosen, effort, shuffler, progress))
        for task in (tasks if chosen else ())
    ]


def measure_inputs(
    rivals: Sequence[Rival],
    effort: Effort,
    shuffler: random.Random,
    progress: Progress,
    quick: bool,
) -> list[tuple[Task, list[Measurement]]]:
    """The sum of 1 to 64 arrays of four floats."""
    tasks = [task_of_inputs(count) for count in INPUT_COUNTS[:: 3 if quick else 1]]
    return _series(tasks, _INPUT_RIVALS, rivals, effort, shuffler, progress)


def measure_sizes(
    rivals: Sequence[Rival],
    effort: Effort,
    shuffler: random.Random,
    progress: Progress,
    quick: bool,
) -> list[tuple[Task, list[Measurement]]]:
    """2 x + 1 on 10 to 10^7 floats."""
    tasks = [task_of_size(size) for size in SIZES[: 5 if quick else None : 2 if quick else 1]]
    return _series(tasks, _SIZE_RIVALS, rivals, effort, shuffler, progress)


def _cyxla_loops(case: Case, count: int, shared: bool, route: str = "auto") -> list[NativeLoop]:
    if shared:
        executable = compile_case(case, route=route)
        return [execute_loop(case, executable) for _ in range(count)]
    return [execute_loop(case, compile_case(case, route=route)) for _ in range(count)]


def _bare_loops(case: Case, count: int, shared: bool) -> list[NativeLoop]:
    if shared:
        program = BareProgram(case, inline=True)
        return [bare_loop(case, program, "kept") for _ in range(count)]
    return [bare_loop(case, BareProgram(case, inline=True), "kept") for _ in range(count)]


_MAKERS: dict[str, Callable[[Case, int, bool], list[NativeLoop]]] = {
    "cyxla-execute": _cyxla_loops,
    "cyxla-execute-pjrt": functools.partial(_cyxla_loops, route="pjrt"),
    "bare-kept": _bare_loops,
}


def measure_threads(
    rivals: Sequence[Rival], effort: Effort, shuffler: random.Random, progress: Progress
) -> list[dict[str, Any]]:
    """Calls a second on 1, 2 and 4 threads, on one executable and on one each."""
    makers = {rival.name: _MAKERS[rival.name] for rival in rivals if rival.name in _MAKERS}
    results = []
    for task in map(task_named, _THREAD_TASKS):
        case = Case(task)
        for shared in (True, False):
            loops, calls = {}, {}
            for name, make in makers.items():
                progress.show(f"threads: {task.name}/{name}")
                try:
                    made = make(case, max(THREADS), shared)
                except NotApplicableError:
                    continue
                for loop in made:
                    if fault := find_fault(case, loop):
                        raise RuntimeError(f"{task.name}/{name} on threads is wrong: {fault}")
                loops[name] = made
                once = made[0].seconds(200) / 200
                calls[name] = max(10, round(effort.sample_seconds * 2 / once))
            samplers = {
                (name, threads): functools.partial(_rate, made[:threads], calls[name])
                for name, made in loops.items()
                for threads in THREADS
            }
            title = f"threads: {task.name}"
            rates = sample_rounds(samplers, effort, shuffler, progress, title)
            _check_again(case, loops)
            results += [
                {
                    "task": task.name,
                    "rival": name,
                    "executables": "one" if shared else "one a thread",
                    "threads": threads,
                    "calls_per_second": quartiles(values),
                }
                for (name, threads), values in rates.items()
            ]
    return results


def _rate(loops: list[NativeLoop], calls: int) -> float:
    return len(loops) * calls / seconds_on_threads(loops, calls)


def _check_again(case: Case, loops: dict[str, list[NativeLoop]]) -> None:
    expected = case.expected()
    for name, made in loops.items():
        for loop in made:
            if fault := case.fault(loop.outputs(), expected):
                raise RuntimeError(f"{case.task.name}/{name} is wrong after threads: {fault}")


def cpus() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))
