# SPDX-License-Identifier: Apache-2.0
"""Times `Executable.run` with each kind of argument, relative to an aligned array."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import cyxla
import jax
import jax.numpy as jnp
import numpy as np

from case import aligned_empty
from goals import argument_limit
from measure import Effort, quartiles, sample_rounds
from progress import Progress

_CALLS = 1000
_REFERENCE = "aligned array"
_ASARRAY = "np.asarray of a new jax.Array"


def _aligned(shape: tuple[int, ...]) -> Any:
    array = aligned_empty(shape, np.float64)
    array.fill(0.5)
    return array


def _new_jax_arrays() -> list[Any]:
    arrays = [jnp.full(3, 0.5) + i for i in range(_CALLS)]
    return list(jax.block_until_ready(arrays))


def _same(value: Any) -> Callable[[], list[Any]]:
    return lambda: [value] * _CALLS


def _kinds() -> dict[str, dict[str, Callable[[], list[Any]]]]:
    """The arguments of a sample's calls, for the program of a scalar and that of three doubles."""
    half = np.full(3, 0.5)
    return {
        "scalar": {
            _REFERENCE: _same(_aligned(())),
            "float": _same(0.5),
            "int": _same(1),
            "bool": _same(True),
            "np.float64": _same(np.float64(0.5)),
            "np.int64": _same(np.int64(1)),
        },
        "vector": {
            _REFERENCE: _same(_aligned((3,))),
            "strided": _same(np.full(6, 0.5)[::2]),
            "float32": _same(half.astype("f4")),
            "int64": _same(np.arange(3)),
            "big-endian": _same(half.astype(">f8")),
            "equal dtype": _same(half.astype(np.dtype("f8", metadata={"unit": "m"}))),
            "list": _same([0.5, 1.5, 2]),
            "jax.Array": _same(jnp.full(3, 0.5)),
            "new jax.Array": _new_jax_arrays,
            _ASARRAY: _new_jax_arrays,
        },
    }


def _seconds(call: Callable[[tuple[Any]], Any], values: Sequence[Any]) -> float:
    start = time.perf_counter()
    for value in values:
        call((value,))
    return (time.perf_counter() - start) / len(values)


def _asarray(values: tuple[Any]) -> Any:
    return np.asarray(values[0])


def measure_arguments(
    effort: Effort, shuffler: random.Random, progress: Progress
) -> list[dict[str, Any]]:
    """Sample every kind in shuffled rounds; return the extra cost over an aligned array."""
    results = []
    for title, kinds in _kinds().items():
        shape = () if title == "scalar" else (3,)
        program = cyxla.lower(lambda x: (2 * x,), [jax.ShapeDtypeStruct(shape, np.float64)])
        run = cyxla.compile_program(program)[0].run
        calls = {name: _asarray if name == _ASARRAY else run for name in kinds}
        for name, make in kinds.items():
            value = make()[0]
            if name != _ASARRAY and not np.array_equal(run((value,))[0], 2 * np.asarray(value)):
                raise RuntimeError(f"run gives a wrong result for the argument {name}: {value!r}")
        samplers = {
            name: lambda call=calls[name], make=make: _seconds(call, make())
            for name, make in kinds.items()
        }
        samples = sample_rounds(samplers, effort, shuffler, progress, f"arguments: {title}")
        results += _entries(title, samples)
    return results


def _entries(title: str, samples: dict[str, list[float]]) -> list[dict[str, Any]]:
    base = min(samples[_REFERENCE])
    asarray = min(samples.get(_ASARRAY, [0.0]))
    entries = []
    for name, own in samples.items():
        extra = (min(own) - base) * 1e9
        limit = None if name in (_REFERENCE, _ASARRAY) else argument_limit(name, asarray * 1e9)
        entries.append(
            {
                "program": title,
                "kind": name,
                "seconds": {"minimum": min(own), "median": quartiles(own)[1]},
                "ratio": min(own) / base,
                "extra_nanoseconds": extra,
                "limit_nanoseconds": limit,
                "met": limit is None or extra <= limit,
            }
        )
    return entries
