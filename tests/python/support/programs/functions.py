# SPDX-License-Identifier: Apache-2.0
"""The longer functions of the program table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.ode import odeint


def runge_kutta(y: Any, num_steps: int = 50) -> Any:
    """The end of a pendulum's path, and all its angles."""

    def field(y: Any) -> Any:
        return jnp.stack([y[1], -jnp.sin(y[0])])

    def step(y: Any, _: None) -> Any:
        k1 = field(y)
        k2 = field(y + 0.05 * k1)
        k3 = field(y + 0.05 * k2)
        k4 = field(y + 0.1 * k3)
        y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y[0]

    return lax.scan(step, y, None, length=num_steps)


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def newton(x: Any) -> Any:
    def improve(state: Any) -> Any:
        value, count = state
        return 0.5 * (value + x / value), count + 1

    def goes_on(state: Any) -> Any:
        value, count = state
        return (jnp.abs(value * value - x) > 1e-4) & (count < 50)

    return lax.while_loop(goes_on, improve, (x, 0))


def dict_perceptron(weights: dict[str, Any], x: Any) -> Any:
    def loss(weights: dict[str, Any]) -> Any:
        return jnp.mean((jnp.tanh(x @ weights["w"]) @ weights["v"]) ** 2)

    return jax.value_and_grad(loss)(weights)


def convolve(x: Any, kernel: Any) -> Any:
    return lax.conv_general_dilated(x, kernel, (2, 1), "SAME", rhs_dilation=(1, 2))


def five_terms(x: Any) -> Any:
    return jnp.stack([x[0] * x[1], jnp.sin(x[2]), jnp.cos(x[3]), jnp.log(x[0] + 3), x[1] ** 2])


def ode_field(t: Any, y: Any, p: Any) -> Any:
    return jnp.stack(
        [
            y[1] * p[0] - p[1] * jnp.cos(t * p[2]),
            -p[3] * y[0] + p[4] * y[2] * y[1] + p[5],
            p[6] * y[0] - p[7] * y[2],
        ]
    )


def pendulum(y: Any, t: Any) -> Any:
    return odeint(lambda y, t: jnp.stack([y[1], -jnp.sin(y[0])]), y, t)


def hock_schittkowski_71(x: Any) -> Any:
    def objective(x: Any) -> Any:
        return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]

    def constraints(x: Any) -> Any:
        return jnp.stack([x.prod(), (x * x).sum()])

    return (
        jax.value_and_grad(objective)(x),
        constraints(x),
        jax.jacrev(constraints)(x),
        jax.hessian(objective)(x),
    )


def robertson(y: Any) -> Any:
    def field(y: Any) -> Any:
        slow, fast, faster = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return jnp.stack([fast - slow, slow - fast - faster, faster])

    return field(y), jax.jacfwd(field)(y)


def lennard_jones(x: Any) -> Any:
    difference = x[:, None] - x[None]
    inverse = 1 / ((difference**2).sum(-1) + jnp.eye(len(x))) ** 3
    return jnp.triu(4 * (inverse**2 - inverse), 1).sum()


def perceptron(w: Any, v: Any, x: Any) -> Any:
    return ((jnp.tanh(x @ w) @ v) ** 2).mean()


def least_squares(a: Any, b: Any, x: Any) -> Any:
    return jax.value_and_grad(lambda x: ((a @ x - b) ** 2).sum())(x)


def quadratic_form(a: Any, x: Any) -> Any:
    return jax.value_and_grad(lambda x: x @ a @ x)(x)


def halved(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] > 1e-3, lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))


def grown(x: Any) -> Any:
    def grow(state: Any) -> Any:
        return jnp.outer(state[0], state[0]).sum(1) + 1, state[1] + jnp.linalg.norm(state[0])

    return lax.while_loop(lambda s: s[0].sum() < 100, grow, (x, 0.0))


def nested_loops(x: Any) -> Any:
    def inner(i: Any, x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda k, y: jnp.sin(y) + jnp.roll(y, 1) * k, x) * 0.5

    return lax.fori_loop(0, 5, inner, x)


def scanned_switch(x: Any) -> Any:
    branches = [jnp.sin, jnp.cos, lambda v: jnp.outer(v, v).sum(0)]
    return lax.scan(lambda c, i: (lax.switch(i % 3, branches, c), c), x, jnp.arange(7))


def cond_in_while(x: Any) -> Any:
    def body(state: Any) -> Any:
        x, i = state
        x = lax.cond(i % 2 == 0, lambda v: jnp.outer(v, v).sum(0), lambda v: runge_kutta(v)[0], x)
        return x, i + 1

    return lax.while_loop(lambda s: s[1] < 9, body, (x, 0))


def loop_over_tuples(x: Any) -> Any:
    def body(state: Any) -> Any:
        (a, b), (i,) = state
        return (a + 1, b * 2), (i + 1,)

    return lax.while_loop(lambda s: s[1][0] < 3, body, ((x, x), (0,)))


def key(data: Any) -> Any:
    return jax.random.wrap_key_data(data, impl="threefry2x32")


def integers(dtype: str) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        return (
            [x + y, x - y, x * y, x & y, x | y, x ^ y, ~x, x >> 1, x << 2, x > y],
            [jnp.cumsum(y), x.max(), lax.population_count(x), np.arange(6).astype(dtype)],
        )

    return function


def table_of(dtype: str) -> Callable[..., Any]:
    table = (np.arange(90) % 7).astype(np.dtype(dtype))
    return lambda i: (jnp.asarray(table), jnp.asarray(table)[i])
