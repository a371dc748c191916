# SPDX-License-Identifier: Apache-2.0
"""Programs for the direct route, and the plugin's results for a few inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cyxla
from support.arrays import Array


class Cycle(NamedTuple):
    """Sets of inputs and their outputs for the module c_threads.

    A set is one bytes object: all inputs, or all outputs, one after the other.
    """

    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]


def rosenbrock(x: Any) -> Any:
    """Value and gradient of Rosenbrock's function."""
    return jax.value_and_grad(
        lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    )(x)


def heat(x: Any, num_steps: int = 60) -> Any:
    """The initial and the final state of many Runge-Kutta steps.

    The direct route writes the initial state before the loop, which uses a constant array.
    """
    source = jnp.sin(jnp.arange(float(x.size), dtype=x.dtype)) / 50

    def slope(u: Any) -> Any:
        return jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1) + source * jnp.cos(u)

    def step(_: Any, u: Any) -> Any:
        k1 = slope(u)
        k2 = slope(u + k1 / 20)
        k3 = slope(u + k2 / 20)
        return u + (k1 + 2 * k2 + 2 * k3 + slope(u + k3 / 10)) / 60

    start = x / 2 + 1
    return start, jax.lax.fori_loop(0, num_steps, step, start)


def switch(x: Any) -> Any:
    """One of three branches, selected by the first number."""
    index = jnp.clip(jnp.nan_to_num(x[0]), -1, 1).astype(jnp.int32) + 1
    return jax.lax.switch(index, [jnp.sin, lambda x: x**2 + 1, lambda x: jnp.cumsum(x) * 2], x)


# A function of one array, and the array's shape and dtype.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], str]] = {
    "rosenbrock": (rosenbrock, (2,), "f8"),
    "sine": (jnp.sin, (3,), "f4"),
    "heat": (heat, (16,), "f8"),
    "switch": (switch, (5,), "f8"),
}

# A call takes long enough to do something else meanwhile.
_LONG: tuple[Callable[[Any], Any], tuple[int, ...], str] = (
    partial(heat, num_steps=2000),
    (16,),
    "f8",
)


def _program(name: str) -> tuple[Callable[[Any], Any], tuple[int, ...], str]:
    return _LONG if name == "long" else PROGRAMS[name]


def compiled(name: str, route: str) -> cyxla.Executable:
    """Compile one of PROGRAMS, or "long", for a route, which it must get."""
    function, shape, dtype = _program(name)
    with jax.enable_x64(True):
        program = cyxla.lower(function, [jax.ShapeDtypeStruct(shape, dtype)], name=name)
    executable, _ = cyxla.compile_program(program, route=route, exact=True)
    assert executable.route == route, executable.route_reason
    return executable


def inputs_of(name: str, num_sets: int = 7) -> list[Array]:
    """Random numbers; each of the last three sets contains a subnormal number, infinity or NaN."""
    _, shape, dtype = _program(name)
    generator = np.random.default_rng(len(name))
    sets = [generator.uniform(-2, 2, shape).astype(dtype) for _ in range(num_sets)]
    for values, special in zip(sets[-3:], (np.finfo(dtype).tiny / 3, np.inf, np.nan), strict=True):
        values[-1] = special
    return sets


def cycle_of(name: str, num_sets: int = 7) -> Cycle:
    """Sets of inputs for one of PROGRAMS and the plugin's results; consecutive results differ."""
    plugin = compiled(name, "pjrt")
    inputs = inputs_of(name, num_sets)
    outputs = [[result.tobytes() for result in plugin.run([values])] for values in inputs]
    for previous, these in zip([outputs[-1], *outputs], outputs, strict=False):
        assert all(before != now for before, now in zip(previous, these, strict=True))
    return Cycle(
        tuple(values.tobytes() for values in inputs), tuple(b"".join(arrays) for arrays in outputs)
    )
