# SPDX-License-Identifier: Apache-2.0
"""Programs that call Python while they run.

`SEEN` holds the arguments of the callbacks in the order of the calls, so that tests can compare
these with `jax.jit` too.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

from support.programs.entry import Program, for_matrix

SEEN: list[Any] = []


def see(*values: Any) -> None:
    SEEN.append([np.asarray(value).tolist() for value in values])


def seen_sine(x: Any) -> Any:
    see(x)
    return np.sin(x)


def same(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def pure(x: Any) -> Any:
    return jax.pure_callback(seen_sine, same(x), x) * 2


def pure_of_pytrees(x: Any) -> Any:
    def split(values: Any) -> Any:
        return {"sum": np.sum(values["x"]), "parts": (values["x"][:2], values["n"] + 1)}

    scalar = jax.ShapeDtypeStruct((), x.dtype)
    shapes = {"sum": scalar, "parts": (jax.ShapeDtypeStruct((2,), x.dtype), scalar)}
    return jax.pure_callback(split, shapes, {"x": x, "n": x[0]})


def pure_in_a_scan(x: Any) -> Any:
    def step(carry: Any, value: Any) -> Any:
        carry = carry + jax.pure_callback(seen_sine, same(value), value)
        return carry, carry * value

    return lax.scan(step, jnp.zeros((), x.dtype), x)


def vectorized(x: Any) -> Any:
    return jax.vmap(lambda v: jax.pure_callback(np.cos, same(v), v, vmap_method="expand_dims"))(x)


def gradient_around(x: Any) -> Any:
    @jax.custom_jvp
    def sine(v: Any) -> Any:
        return jax.pure_callback(np.sin, same(v), v)

    sine.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(*primals) * tangents[0]))
    return jax.value_and_grad(lambda v: sine(v).sum())(x)


def unordered(x: Any) -> Any:
    return io_callback(seen_sine, same(x), x) + 1


def ordered(x: Any) -> Any:
    io_callback(see, None, x[0], ordered=True)
    y = io_callback(seen_sine, same(x), x, ordered=True)
    io_callback(see, None, y[1], ordered=True)
    return y


def ordered_in_a_loop(x: Any) -> Any:
    def step(i: Any, value: Any) -> Any:
        jax.debug.callback(see, i, value[0], ordered=True)
        return value * 0.5

    return lax.fori_loop(0, 5, step, x)


def debug_callback(x: Any) -> Any:
    jax.debug.callback(see, x)
    return x * 2


def debug_print(x: Any) -> Any:
    jax.debug.print("x[0] = {first}", first=x[0] > 0)
    return x + 1


def ordered_prints(x: Any) -> Any:
    for i in range(3):
        jax.debug.print("{i}: {shape}", i=i, shape=x.shape[0], ordered=True)
    return lax.cond(x[0] > 0, lambda v: (jax.debug.print("positive"), v)[1], lambda v: -v, x)


def nothing_but_a_callback(x: Any) -> Any:
    jax.debug.callback(see, x, ordered=True)
    return ()


def in_single(rng: np.random.Generator) -> list[Any]:
    return [rng.uniform(0.1, 1, 6).astype("f4")]


def in_double(rng: np.random.Generator) -> list[Any]:
    return [rng.uniform(0.1, 1, 6)]


CALLBACKS: dict[str, Program] = {
    "pure_callback, float32": for_matrix(pure, in_single, "callback"),
    "pure_callback, float64": for_matrix(pure, in_double, "callback"),
    "pure_callback of pytrees": for_matrix(pure_of_pytrees, in_single, "callback"),
    "pure_callback in a scan": for_matrix(pure_in_a_scan, in_single, "callback"),
    "pure_callback under vmap": for_matrix(vectorized, in_double, "callback"),
    "gradient around a pure_callback": for_matrix(gradient_around, in_double, "callback"),
    "io_callback": for_matrix(unordered, in_single, "callback"),
    "io_callback, ordered": for_matrix(ordered, in_double, "callback"),
    "debug.callback, ordered, in a loop": for_matrix(ordered_in_a_loop, in_single, "callback"),
    "debug.callback": for_matrix(debug_callback, in_double, "callback"),
    "debug.print": for_matrix(debug_print, in_single, "callback"),
    "debug.print, ordered": for_matrix(ordered_prints, in_double, "callback"),
    "nothing but a callback": for_matrix(nothing_but_a_callback, in_single, "callback"),
}
