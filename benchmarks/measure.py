# SPDX-License-Identifier: Apache-2.0
"""Measures the rivals of one task: checks each against JAX, then times them in shuffled rounds."""

from __future__ import annotations

import dataclasses
import gc
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from case import Case
from loops import CallError, Loop
from progress import Progress
from rivals import MissingError, NotApplicableError, Rival

# Seeds of the inputs of the checks. The second one catches a rival that returns what it computed
# before, or reads memory of its own.
_CHECK_SEEDS = (1, 2)


Kind = TypeVar("Kind")


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: how often each rival is sampled; the order is shuffled in each round.
        sample_seconds: the least duration of a sample, which decides its number of calls.
    """

    rounds: int
    sample_seconds: float


@dataclasses.dataclass
class Measurement:
    """The outcome of one rival on one task.

    Attributes:
        status: "measured", "missing", "not applicable", "wrong" or "failed".
        reason: why it was not measured.
        calls: calls in each sample.
        samples: seconds per call of each round.
    """

    rival: Rival
    status: str
    reason: str = ""
    calls: int = 0
    samples: list[float] = dataclasses.field(default_factory=list)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median and third quartile."""
    first, median, third = np.percentile(values, (25, 50, 75))
    return float(first), float(median), float(third)


def paired_ratios(
    samples: Sequence[float], reference: Sequence[float]
) -> tuple[float, float, float]:
    """Quartiles of the ratios of two rivals' times, each ratio within one round."""
    return quartiles([own / other for own, other in zip(samples, reference, strict=True)])


def prepare_all(
    case: Case, rivals: Sequence[Rival], progress: Progress
) -> tuple[list[Measurement], dict[str, Loop]]:
    """Prepare and check every rival. Returns the loops of those that may be timed."""
    measurements, loops = [], {}
    for rival in rivals:
        progress.show(f"{case.task.name}: checking {rival.name}")
        measurement, loop = _prepare(case, rival)
        measurements.append(measurement)
        if loop is not None:
            loops[rival.name] = loop
        elif measurement.status != "not applicable":
            progress.say(
                f"{case.task.name}/{rival.name}: {measurement.status}: {measurement.reason}"
            )
    return measurements, loops


def _prepare(case: Case, rival: Rival) -> tuple[Measurement, Loop | None]:
    try:
        loop = rival.prepare(case)
        fault = find_fault(case, loop)
    except NotApplicableError as reason:
        return Measurement(rival, "not applicable", str(reason)), None
    except MissingError as reason:
        return Measurement(rival, "missing", str(reason)), None
    except ModuleNotFoundError as error:
        package = (error.name or "?").partition(".")[0]
        return Measurement(rival, "missing", f"the package {package} is not installed"), None
    except Exception as error:
        return Measurement(rival, "failed", f"{type(error).__name__}: {error}"), None
    if fault is not None:
        return Measurement(rival, "wrong", fault), None
    return Measurement(rival, "measured"), loop


def find_fault(case: Case, loop: Loop) -> str | None:
    """A description of what is wrong with the results of the loop, or None."""
    for seed in _CHECK_SEEDS:
        case.fill(seed)
        expected = case.expected()
        # Three calls, so that a rival with several copies of the inputs uses all of them.
        loop.seconds(3)
        if fault := case.fault(loop.outputs(), expected):
            return fault
    return None


def sample_rounds(
    samplers: Mapping[Kind, Callable[[], float]],
    effort: Effort,
    shuffler: random.Random,
    progress: Progress,
    title: str,
) -> dict[Kind, list[float]]:
    """Call every sampler once a round, in shuffled order and without garbage collection."""
    samples: dict[Kind, list[float]] = {kind: [] for kind in samplers}
    order = list(samplers)
    gc.collect()
    gc.disable()
    try:
        for number in range(effort.rounds):
            progress.show(f"{title}: round {number + 1} of {effort.rounds}")
            shuffler.shuffle(order)
            for kind in order:
                samples[kind].append(samplers[kind]())
    finally:
        gc.enable()
    return samples


def measure(
    case: Case,
    rivals: Sequence[Rival],
    effort: Effort,
    shuffler: random.Random,
    progress: Progress,
) -> list[Measurement]:
    """Check and time the rivals of a task."""
    measurements, loops = prepare_all(case, rivals, progress)
    calls = {name: _calibrate(loop, effort) for name, loop in loops.items()}
    samplers = {
        name: lambda loop=loop, count=calls[name]: loop.seconds(count) / count
        for name, loop in loops.items()
    }
    samples = sample_rounds(samplers, effort, shuffler, progress, case.task.name)
    expected = case.expected()
    for measurement in measurements:
        name = measurement.rival.name
        if name not in loops:
            continue
        measurement.calls, measurement.samples = calls[name], samples[name]
        if fault := case.fault(loops[name].outputs(), expected):
            measurement.status, measurement.reason = "wrong", f"after the timing, {fault}"
            progress.say(f"{case.task.name}/{name}: wrong {measurement.reason}")
    return measurements


def _calibrate(loop: Loop, effort: Effort) -> int:
    """The number of calls of a sample. Warms the loop up too."""
    calls = 1
    while True:
        seconds = loop.seconds(calls)
        if seconds >= effort.sample_seconds / 4:
            return max(1, round(calls * effort.sample_seconds / seconds))
        calls *= 4 if seconds < effort.sample_seconds / 20 else 2


def measured(measurements: Sequence[Measurement]) -> dict[str, Measurement]:
    """The measurements that have samples, by the rival's name."""
    return {
        measurement.rival.name: measurement
        for measurement in measurements
        if measurement.status == "measured"
    }


__all__ = [
    "CallError",
    "Effort",
    "Measurement",
    "find_fault",
    "measure",
    "measured",
    "paired_ratios",
    "prepare_all",
    "quartiles",
    "sample_rounds",
]
