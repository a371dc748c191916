# SPDX-License-Identifier: Apache-2.0
"""The speed goals: limits of paired ratios of two rivals in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from measure import Measurement, measured, paired_ratios


class Goal(NamedTuple):
    """`rival` takes at most `limit` times as long as `reference` on each of the tasks."""

    rival: str
    reference: str
    tasks: tuple[str, ...]
    limit: float


class Outcome(NamedTuple):
    """The outcome of a goal on a task: quartiles of the ratios, and whether the median is valid."""

    goal: Goal
    task: str
    ratios: tuple[float, float, float]
    is_met: bool


_FOUR = ("rosenbrock-2", "rosenbrock-100", "hs71", "robertson")
_SMALL = (*_FOUR, "mlp", "tanh-64", "sin-3")

# The bare loops must be competent: within 1.3 of what a careful author measured relative to
# jax.jit on another day (microseconds: jax.jit, copies, views kept).
_EARLIER = {
    "rosenbrock-2": (13.5, 19.0, 3.8),
    "rosenbrock-100": (14.8, 20.0, 5.1),
    "hs71": (28.7, 46.0, 7.8),
    "robertson": (13.4, 18.0, 4.0),
    "mlp": (66.0, 195.0, 31.0),
}

GOALS: tuple[Goal, ...] = (
    Goal("cyxla-execute-pjrt", "bare-kept", _SMALL, 1.05),
    Goal("cyxla-execute-moving-pjrt", "bare-kept", _SMALL, 1.30),
    Goal("cyxla-run-pjrt", "jax-jit", _FOUR, 0.45),
    Goal("cyxla-bind-pjrt", "cyxla-execute-pjrt", _SMALL, 1.15),
    Goal("cyxla-execute-pjrt", "jax-device", ("elementwise-1e7",), 1.10),
    Goal("cyxla-execute-in-place-pjrt", "jax-device", ("elementwise-1e7",), 1.10),
    Goal("cyxla-execute", "cyxla-execute-pjrt", ("rosenbrock-2", "hs71", "robertson"), 1 / 50),
    Goal("cyxla-execute", "cyxla-execute-pjrt", ("rosenbrock-100",), 1 / 20),
    Goal("cyxla-execute", "cyxla-execute-pjrt", ("tanh-64",), 1 / 15),
    Goal("cyxla-execute", "casadi-c", ("rosenbrock-100",), 1.0),
    Goal("cyxla-execute", "casadi-c", ("hs71", "robertson"), 5.0),
    Goal("cyxla-execute", "onnxruntime", ("mlp",), 1.3),
    *(
        Goal("bare-kept", "jax-jit", (task,), round(1.3 * kept / jit, 2))
        for task, (jit, _, kept) in _EARLIER.items()
    ),
    *(
        Goal("bare-copies", "jax-jit", (task,), round(1.3 * copies / jit, 2))
        for task, (jit, copies, _) in _EARLIER.items()
    ),
)


# Limits of the extra cost of an argument of `run` over an aligned array of the declared dtype.
_ARGUMENT_NANOSECONDS = 150.0


def argument_limit(kind: str, asarray_nanoseconds: float) -> float:
    """The limit in nanoseconds for a kind; for a jax.Array a third of the cost of np.asarray."""
    return asarray_nanoseconds / 3 if kind.endswith("jax.Array") else _ARGUMENT_NANOSECONDS


# The limit of cyxla's lowering time relative to JAX's own lowering and serialization.
LOWERING_FACTOR = 1.5

# Processor time of a compilation that may have a second form: one more compilation as long as the
# first, half of that for its kernels, and an allowance for small programs.
_COMPILE_FACTOR, _COMPILE_ALLOWANCE_SECONDS = 2.5, 0.25


def keeps_compile_limit(seconds: float, exact_seconds: float) -> bool:
    """Whether compiling by default stays within its limit relative to `exact=True`."""
    return seconds <= _COMPILE_FACTOR * exact_seconds + _COMPILE_ALLOWANCE_SECONDS


def outcomes(results: Mapping[str, Sequence[Measurement]]) -> list[Outcome]:
    """Every goal on every task for which both rivals were measured."""
    found = []
    for goal in GOALS:
        for task in goal.tasks:
            times = measured(results.get(task, ()))
            if goal.rival in times and goal.reference in times:
                ratios = paired_ratios(times[goal.rival].samples, times[goal.reference].samples)
                found.append(Outcome(goal, task, ratios, ratios[1] <= goal.limit))
    return found
