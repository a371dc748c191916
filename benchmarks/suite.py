# SPDX-License-Identifier: Apache-2.0
"""One run of the benchmark: the chosen tasks and rivals, part by part."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from argument_kinds import measure_arguments
from case import Case
from goals import outcomes
from growth import measure_inputs, measure_sizes, measure_threads
from latency import measure_latency
from lowering import measure_lowering
from machine import describe_run
from measure import Effort, Measurement, measure
from products import measure_products
from progress import Progress
from results_file import goal_entries, task_entry
from rivals import Rival, all_rivals
from tasks import TASKS, Task

Choice = Callable[[str, str], bool]

# Rounds, and seconds per sample, of the small tasks, the large ones, and growth.
_FULL = {"small": Effort(31, 0.010), "large": Effort(15, 0.0), "growth": Effort(11, 0.006)}
_QUICK = {"small": Effort(5, 0.001), "large": Effort(3, 0.0), "growth": Effort(3, 0.001)}
_LATENCY_CALLS, _QUICK_LATENCY_CALLS = 1_000_000, 10_000


def listing(extra_rivals: Sequence[Path]) -> str:
    """The names that `--only` takes."""
    tasks = [f"  {task.name:20}{' '.join(task.title.split())}" for task in TASKS]
    rivals = [
        f"  {rival.name:26}{rival.title}, called from {rival.caller}"
        for rival in all_rivals(*extra_rivals)
    ]
    return "\n".join(["tasks:", *tasks, "rivals:", *rivals])


def run_suite(
    *,
    quick: bool,
    parts: Collection[str],
    is_chosen: Choice,
    extra_rivals: Sequence[Path],
    rounds: int | None,
    shuffler: random.Random,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Measure; return the result for the JSON file, and the rivals that were wrong or failed."""
    progress = Progress()
    efforts = dict(_QUICK if quick else _FULL)
    if rounds is not None:
        efforts["small"] = Effort(rounds, efforts["small"].sample_seconds)
    run = {**describe_run(), "quick": quick, "rounds": efforts["small"].rounds}
    rivals = all_rivals(*extra_rivals)
    results: dict[str, Sequence[Measurement]] = {}
    tasks = []
    for task in TASKS if "times" in parts else ():
        chosen = [rival for rival in rivals if is_chosen(task.name, rival.name)]
        if chosen:
            effort = efforts["large" if task.is_large else "small"]
            results[task.name] = measure(Case(task), chosen, effort, shuffler, progress)
            tasks.append(task_entry(task, results[task.name]))
            progress.say(_summary(task, results[task.name]))
    growth = efforts["growth"]

    def chosen_for(part: str) -> list[Rival]:
        # The patterns name tasks. The other parts have other tasks, so only the rival counts.
        names = (task.name for task in TASKS)
        of_any = {rival.name for name in names for rival in rivals if is_chosen(name, rival.name)}
        return [rival for rival in rivals if part in parts and rival.name in of_any]

    inputs = measure_inputs(chosen_for("inputs"), growth, shuffler, progress, quick)
    sizes = measure_sizes(chosen_for("sizes"), growth, shuffler, progress, quick)
    result = {
        "run": run,
        "tasks": tasks,
        "goals": goal_entries(outcomes(results)),
        "inputs": [task_entry(task, measurements) for task, measurements in inputs],
        "sizes": [task_entry(task, measurements) for task, measurements in sizes],
        "threads": measure_threads(chosen_for("threads"), growth, shuffler, progress),
        "latency": measure_latency(
            chosen_for("latency"), _QUICK_LATENCY_CALLS if quick else _LATENCY_CALLS, progress
        ),
        "arguments": (
            measure_arguments(efforts["small"], shuffler, progress) if "arguments" in parts else []
        ),
        "lowering": measure_lowering(progress, quick) if "lowering" in parts else [],
        "products": measure_products(progress, quick) if "products" in parts else [],
    }
    progress.say("done")
    return result, _faults(result)


def _summary(task: Task, measurements: Sequence[Measurement]) -> str:
    counts: dict[str, int] = {}
    for measurement in measurements:
        counts[measurement.status] = counts.get(measurement.status, 0) + 1
    return f"{task.name}: " + ", ".join(f"{count} {status}" for status, count in counts.items())


def _faults(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"task": task["task"], **rival}
        for part in ("tasks", "inputs", "sizes")
        for task in result[part]
        for rival in task["rivals"]
        if rival["status"] in ("wrong", "failed")
    ]
