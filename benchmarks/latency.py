# SPDX-License-Identifier: Apache-2.0
"""The distribution of single calls from C; in a control loop the slowest call matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from case import Case
from loops import NativeLoop
from measure import find_fault
from progress import Progress
from rivals import NotApplicableError, Rival
from rivals.bare_loop import BareProgram, bare_loop
from rivals.cyxla_native import call_loop, compile_case, execute_loop
from tasks import Array, task_named

_TASKS = ("sin-3", "hs71")
_WARM_UP_CALLS = 1000


def _bare(case: Case) -> NativeLoop:
    return bare_loop(case, BareProgram(case, inline=True), "kept")


_MAKERS: dict[str, Callable[[Case], NativeLoop]] = {
    "cyxla-execute": lambda case: execute_loop(case, compile_case(case)),
    "cyxla-execute-pjrt": lambda case: execute_loop(case, compile_case(case, route="pjrt")),
    "cyxla-execute-moving-pjrt": lambda case: execute_loop(
        case, compile_case(case, route="pjrt"), moving=True
    ),
    "cyxla-call-pjrt": lambda case: call_loop(case, compile_case(case, route="pjrt")),
    "bare-kept": _bare,
}


def measure_latency(
    rivals: Sequence[Rival], calls: int, progress: Progress
) -> list[dict[str, Any]]:
    """Percentiles of `calls` calls, with and without a warm-up, and the resident memory."""
    makers = {rival.name: _MAKERS[rival.name] for rival in rivals if rival.name in _MAKERS}
    nanoseconds = np.ones(calls, np.uint32)
    results = []
    for task in map(task_named, _TASKS):
        case = Case(task)
        for name, make in makers.items():
            for warm_up_calls in (0, _WARM_UP_CALLS):
                progress.show(f"latency: {task.name}/{name}, {calls} calls")
                try:
                    loop = make(case)
                except NotApplicableError:
                    continue
                if warm_up_calls:
                    loop.seconds(warm_up_calls)
                nanoseconds.fill(1)
                memory = _resident_bytes()
                loop.time_each(nanoseconds)
                grown = _resident_bytes() - memory
                if fault := find_fault(case, loop):
                    raise RuntimeError(f"{task.name}/{name} is wrong: {fault}")
                results.append(
                    {
                        "task": task.name,
                        "rival": name,
                        "warm_up_calls": warm_up_calls,
                        "calls": calls,
                        "memory_growth_bytes": grown,
                        "nanoseconds": summarize(nanoseconds),
                    }
                )
    return results


def summarize(nanoseconds: Array) -> dict[str, int]:
    """Percentiles of single calls, with the first and the slowest."""
    levels = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "worst": 100.0}
    values = np.percentile(nanoseconds, list(levels.values()), method="higher")
    named = {name: int(value) for name, value in zip(levels, values, strict=True)}
    return {"first": int(nanoseconds[0]), **named}


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * 4096
