# SPDX-License-Identifier: Apache-2.0
"""The JSON file of a run: the data of the table and the plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goals import Outcome
from measure import Measurement, measured, paired_ratios, quartiles
from tasks import Task

SCHEMA = 1
REFERENCES = ("jax-jit", "bare-kept")


def _rival_entry(measurement: Measurement, times: Mapping[str, Measurement]) -> dict[str, Any]:
    rival = measurement.rival
    entry: dict[str, Any] = {
        "rival": rival.name,
        "title": rival.title,
        "caller": rival.caller,
        "status": measurement.status,
    }
    if measurement.status != "measured":
        return {**entry, "reason": measurement.reason}
    first, median, third = quartiles(measurement.samples)
    return {
        **entry,
        "calls_per_sample": measurement.calls,
        "seconds": {
            "minimum": min(measurement.samples),
            "first_quartile": first,
            "median": median,
            "third_quartile": third,
        },
        "ratio_to": {
            name: paired_ratios(measurement.samples, times[name].samples)
            for name in REFERENCES
            if name in times
        },
        "samples": measurement.samples,
    }


def task_entry(task: Task, measurements: Sequence[Measurement]) -> dict[str, Any]:
    """One task: each rival's status, quartiles, paired ratios, and the samples themselves."""
    times = measured(measurements)
    return {
        "task": task.name,
        "title": task.title,
        "rivals": [_rival_entry(measurement, times) for measurement in measurements],
    }


def goal_entries(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The goals and what was measured."""
    return [
        {
            "rival": outcome.goal.rival,
            "reference": outcome.goal.reference,
            "task": outcome.task,
            "limit": outcome.goal.limit,
            "ratio": outcome.ratios,
            "met": outcome.is_met,
        }
        for outcome in found
    ]


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write a run's JSON file."""
    path.write_text(json.dumps({"schema": SCHEMA, **result}, indent=1) + "\n")


def read_result(path: Path) -> dict[str, Any]:
    """Read a run's JSON file. Raises ValueError for another format."""
    result: dict[str, Any] = json.loads(path.read_text())
    if result.get("schema") != SCHEMA:
        raise ValueError(f"{path} has schema {result.get('schema')}, this program reads {SCHEMA}")
    return result
