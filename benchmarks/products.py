# SPDX-License-Identifier: Apache-2.0
"""Measures how compiling scales with the number of small matrix products, exact or not."""

from __future__ import annotations

import time
from typing import Any

import cyxla
import jax

from goals import keeps_compile_limit
from progress import Progress

_SIZES = (8, 20)
_COUNTS = (1, 3, 10, 30, 100)
_QUICK_COUNTS = (1, 30)
_ROUNDS = 3
# More of them would take minutes and add no information.
_MAX_REPEATED = 10


def _program(size: int, count: int) -> cyxla.Program:
    def products(a: jax.Array, b: jax.Array) -> tuple[jax.Array, ...]:
        return tuple((a * (i + 1.5)) @ b for i in range(count))

    matrix = jax.ShapeDtypeStruct((size, size), "f8")
    return cyxla.lower(products, [matrix, matrix], platform="cpu")


def _compile(program: cyxla.Program, exact: bool) -> tuple[float, cyxla.CompileStatistics, str]:
    """The processor seconds of a compilation, its statistics, and the route."""
    start = time.process_time()
    executable, statistics = cyxla.compile_program(program, exact=exact, cache=False)
    return time.process_time() - start, statistics, executable.route


def measure_products(progress: Progress, quick: bool) -> list[dict[str, Any]]:
    """The least of a few alternating compilations, after a warm-up."""
    _compile(_program(2, 1), True)
    results = []
    for size in _SIZES:
        for count in _QUICK_COUNTS if quick else _COUNTS:
            progress.show(f"products: {count} of {size} x {size}")
            program = _program(size, count)
            seconds = {True: float("inf"), False: float("inf")}
            for _ in range(1 if quick or count > _MAX_REPEATED else _ROUNDS):
                for exact in (True, False):
                    taken, statistics, route = _compile(program, exact)
                    seconds[exact] = min(seconds[exact], taken)
            results.append(
                {
                    "size": size,
                    "products": count,
                    "exact_seconds": seconds[True],
                    "default_seconds": seconds[False],
                    "second_form_seconds": statistics.second_form_seconds,
                    "route": route,
                    "met": keeps_compile_limit(seconds[False], seconds[True]),
                }
            )
    return results
