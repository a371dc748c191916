# SPDX-License-Identifier: Apache-2.0
"""Measures how lowering scales with the program, next to JAX's lowering and serialization."""

from __future__ import annotations

import gc
import io
import time
import warnings
from collections.abc import Callable
from typing import Any

import cyxla
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from goals import LOWERING_FACTOR
from progress import Progress

_SECONDS, _QUICK_SECONDS = 2.0, 0.2  # of all rounds of a program
_MAX_ROUNDS = 15

Make = Callable[[int], tuple[Callable[..., Any], list[Any]]]


def _elementwise(steps: int) -> tuple[Callable[..., Any], list[Any]]:
    def unrolled(x: jax.Array) -> jax.Array:
        for i in range(steps):
            x = jnp.sin(x) + x * (i % 7)
        return x

    return unrolled, [jax.ShapeDtypeStruct((2,), "f4")]


def _products(steps: int) -> tuple[Callable[..., Any], list[Any]]:
    def unrolled(x: jax.Array) -> jax.Array:
        for i in range(steps):
            x = jnp.sin(x @ x + i)
        return x

    return unrolled, [jax.ShapeDtypeStruct((3, 3), "f4")]


def _constants(count: int) -> tuple[Callable[..., Any], list[Any]]:
    generator = np.random.default_rng(0)
    tables = [generator.normal(size=512 * (1 + i % 16)) for i in range(count)]  # 4 to 64 KB

    def sums(x: jax.Array) -> jax.Array:
        for table in tables:
            x = x + jnp.sum(table * x)
        return x

    return sums, [jax.ShapeDtypeStruct((), "f8")]


def _reactions(count: int) -> tuple[Callable[..., Any], list[Any]]:
    """The Jacobian of mass-action kinetics, each reaction written out."""
    generator = np.random.default_rng(0)
    species = max(2, count // 3)
    pairs = generator.integers(0, species, (count, 3))

    def rates(x: jax.Array) -> jax.Array:
        change = [jnp.zeros(()) for _ in range(species)]
        for i, (left, right, product) in enumerate(pairs):
            rate = (1 + i % 5) * x[left] * x[right]
            change[left] = change[left] - rate
            change[product] = change[product] + rate
        return jnp.stack(change)

    return jax.jacfwd(rates), [jax.ShapeDtypeStruct((species,), "f8")]


# Names, makers and sizes: the last unrolled ones have 20,000 operations.
_PROGRAMS: tuple[tuple[str, Make, tuple[int, ...]], ...] = (
    ("sin(x) + x * i", _elementwise, (3, 30, 300, 3000, 5000)),
    ("sin(x @ x + i)", _products, (3, 30, 300, 3000)),
    ("constants of 4 to 64 KB", _constants, (20, 200)),
    ("reactions, Jacobian", _reactions, (10, 100, 300)),
)
_QUICK_LIMIT = 300


def _lower_with_jax(function: Callable[..., Any], arguments: list[Any]) -> None:
    def fresh(*values: Any) -> Any:  # JAX caches lowerings by the function object
        return function(*values)

    module = jax.jit(fresh).lower(*arguments).compiler_ir("stablehlo")
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    with module.context:  # serializing changes the module, which JAX caches
        clone = ir.Module.parse(bytecode.getvalue())
        version = stablehlo.get_current_version()
        stablehlo.serialize_portable_artifact(clone, version, allow_other_dialects=True)


def _lower(function: Callable[..., Any], arguments: list[Any]) -> None:
    cyxla.lower(function, arguments, platform="cpu")


def _seconds(call: Callable[..., None], *arguments: Any) -> float:
    gc.collect()
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start


def measure_lowering(progress: Progress, quick: bool) -> list[dict[str, Any]]:
    """The least processor seconds of a few alternating runs."""
    results = []
    for title, make, sizes in _PROGRAMS:
        for size in sizes:
            if quick and size > _QUICK_LIMIT:
                continue
            progress.show(f"lowering: {title}, {size}")
            function, arguments = make(size)
            best = {_lower_with_jax: float("inf"), _lower: float("inf")}
            total, rounds = 0.0, 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cyxla.LargeConstantsWarning)
                limit = _QUICK_SECONDS if quick else _SECONDS
                while rounds < 2 or (total < limit and rounds < _MAX_ROUNDS):
                    for call in best:
                        taken = _seconds(call, function, arguments)
                        best[call] = min(best[call], taken)
                        total += taken
                    rounds += 1
            ratio = best[_lower] / best[_lower_with_jax]
            results.append(
                {
                    "program": title,
                    "size": size,
                    "jax_seconds": best[_lower_with_jax],
                    "seconds": best[_lower],
                    "ratio": ratio,
                    "met": ratio <= LOWERING_FACTOR,
                }
            )
    return results
