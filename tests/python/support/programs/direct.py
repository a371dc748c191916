# SPDX-License-Identifier: Apache-2.0
"""Programs for the direct route: every kind of step and dtype, and some that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from support.programs.entry import Program, case
from support.programs.functions import (
    cond_in_while,
    five_terms,
    grown,
    halved,
    hock_schittkowski_71,
    key,
    least_squares,
    lennard_jones,
    loop_over_tuples,
    nested_loops,
    ode_field,
    pendulum,
    perceptron,
    quadratic_form,
    robertson,
    rosenbrock,
    runge_kutta,
    scanned_switch,
    table_of,
)
from support.programs.others import INTEGERS

F4, F8, I4, I8, U4, B1 = "float32", "float64", "int32", "int64", "uint32", "bool"


def S(*shape: int, dtype: str = F8) -> jax.ShapeDtypeStruct:  # noqa: N802
    return jax.ShapeDtypeStruct(shape, np.dtype(dtype))


def S4(*shape: int) -> jax.ShapeDtypeStruct:  # noqa: N802
    return S(*shape, dtype=F4)


def I(*shape: int) -> jax.ShapeDtypeStruct:  # noqa: E743, N802
    return S(*shape, dtype=I4)


_RNG = np.random.default_rng(0)
_WIDE, _LONG, _LONGEST = _RNG.normal(size=(7, 40)), _RNG.normal(size=40), _RNG.normal(size=5000)


def _measured(s: Callable[..., Any], dtype: str) -> dict[str, Program]:
    """The programs that exist in single and in double precision."""
    gradient = jax.value_and_grad
    programs = {
        "tanh(A @ x)": case(lambda a, x: jnp.tanh(a @ x), [s(64, 64), s(64)]),
        **{f"rosenbrock {n}": case(gradient(rosenbrock), [s(n)]) for n in (2, 10, 100)},
        "logsumexp and its gradient": case(gradient(jsp.special.logsumexp), [s(32)]),
        "matrix product 8": case(lambda a, b: a @ b, [s(8, 8), s(8, 8)]),
        "inner product": case(lambda a, b: a @ b, [s(64), s(64)]),
        "large sum": case(lambda a: a.sum(), [s(200, 200)]),
        "sum of squares, vmap": case(jax.vmap(lambda a: (a * a).sum()), [s(32, 64)]),
        "transposed": case(lambda a: (a.T, a.T.reshape(-1)), [s(5, 7)]),
        "transposed, 3d": case(lambda a: jnp.transpose(a, (2, 0, 1)), [s(3, 4, 5)]),
        "perceptron": case(perceptron, [s(8, 8), s(8, 8), s(8, 8)]),
        "perceptron gradient": case(
            gradient(perceptron, (0, 1)), [s(32, 32), s(32, 32), s(16, 32)]
        ),
        "lennard-jones 38": case(gradient(lennard_jones), [s(38, 3)]),
    }
    return {f"{name}, {dtype}": program for name, program in programs.items()}


DIRECT: dict[str, Program] = {
    **_measured(S4, F4),
    **_measured(S, F8),
    "sin 3": case(lambda x: jnp.sin(x) * 2, [S4(3)]),
    "where, clip, exp": case(lambda x: jnp.where(x > 0, jnp.exp(jnp.clip(x, -1, 1)), x), [S(50)]),
    "value and jacobian": case(lambda x: (five_terms(x), jax.jacfwd(five_terms)(x)), [S(4)]),
    "value and reverse jacobian": case(
        lambda x: (five_terms(x), jax.jacrev(five_terms)(x)), [S(4)]
    ),
    "ode field": case(ode_field, [S(), S(3), S(8)]),
    "constants": case(lambda x: (_WIDE @ x, _LONG * x), [S(40)]),
    "constant 5000": case(lambda x: x * _LONGEST, [S(5000)]),
    "least squares": case(least_squares, [S(50, 5), S(50), S(5)]),
    "quadratic form": case(quadratic_form, [S(10, 10), S(10)]),
    "hock-schittkowski 71": case(hock_schittkowski_71, [S(4)]),
    "robertson": case(robertson, [S(3)]),
    "small hessian of products": case(jax.hessian(lambda x: jnp.tanh(x @ x.T).sum()), [S(3, 3)]),
    "sin 20000": case(lambda x: jnp.sin(x) * 2, [S4(20_000)]),
    "sin 200000": case(jnp.sin, [S4(200_000)]),
    "a mebibyte": case(lambda x: x + 1, [S(131_072)]),
    "more than a mebibyte": case(lambda x: x + 1, [S(131_073)]),
    "no inputs, a scalar output": case(lambda: (jnp.arange(4.0), jnp.float32(3)), []),
    "no inputs, no outputs": case(lambda: (), []),
    "empty arrays": case(lambda x: (x.sum(), x * 2), [S(0, 4)]),
    "an empty one among others": case(
        lambda x, y, z: (x + z, y * 2, y.sum()), [S(3), S(0, 4), S(3)]
    ),
    "scalars": case(lambda x, y: x * y + 1, [S(), S()]),
    "30 inputs, 30 outputs": case(lambda *a: [v * 2 for v in a], [S(3)] * 30),
    "40 inputs, 40 outputs": case(lambda *a: [v + a[0] for v in a], [S4(5)] * 40),
    "12 large inputs": case(lambda *a: [sum(a) * i for i in range(12)], [S(2000)] * 12),
    "unused inputs": case(lambda a, b: a * 2, [S(3), S(4)]),
    "inputs passed through": case(lambda x, y: (x, y, x, x * y), [S(8), S(8)]),
    "inputs swapped": case(lambda x, y: (y, x), [S(8), S(8)]),
    "an input alone": case(lambda x: x, [S(5)]),
    "a result twice": case(lambda x: (x + 1, x + 1, (x + 1) * 2), [S4(6)]),
    "called twice": case(lambda x: jax.jit(jnp.sinc)(x) + jax.jit(jnp.sinc)(x * 2), [S(5)]),
    "composite": case(lax.composite(lambda v: jnp.sin(v) * 2, "my.op"), [S4(5)]),
    "optimization barrier": case(
        lambda x: lax.optimization_barrier((jnp.sin(x), x))[0] * 2, [S(5)]
    ),
    "polynomial": case(lambda x: jnp.polyval(jnp.arange(6.0), x), [S()]),
    "integer powers": case(lambda x: x**5 + lax.integer_pow(x, -2), [S(6)]),
    "fmod and power": case(
        lambda x, y: (jnp.fmod(x, y), jnp.remainder(x, y), x**y, jnp.cbrt(x)), [S(9), S(9)]
    ),
    "hypot and atan2": case(
        lambda x, y: (jnp.hypot(x, y), jnp.arctan2(x, y), jnp.nextafter(x, y)), [S4(9), S4(9)]
    ),
    "is finite": case(
        lambda x: (jnp.isfinite(x), jnp.isnan(x), jnp.nan_to_num(x), jnp.signbit(x)), [S(9)]
    ),
    "minimum and maximum": case(
        lambda x, y: (jnp.minimum(x, y), jnp.fmax(x, y), x.min(), y.max()), [S4(9), S4(9)]
    ),
    "bessel": case(lambda x: jsp.special.bessel_jn(x, v=3), [S(3)]),
    "betainc": case(lambda x: jsp.special.betainc(x, x, 0.3), [S(3)]),
    "batch norm": case(lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5), [S4(8, 3)]),
    "softmax": case(jax.nn.softmax, [S(4, 9)]),
    "gelu and its gradient": case(jax.value_and_grad(lambda x: jax.nn.gelu(x).sum()), [S4(16)]),
    "running sums": case(lambda x: jnp.cumsum(x, 1), [S(4, 9)]),
    "running sum, reversed": case(lambda x: jnp.cumsum(jnp.where(x > 0, x, -x))[::-1], [S(300)]),
    "means of three dimensions": case(lambda x: x.mean((0, 2)), [S4(5, 6, 7)]),
    "reversed": case(lambda x: x[::-1, ::-1].T, [S(3, 4)]),
    "window": case(lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "SAME"), [S(12)]),
    "convolution 1d": case(jnp.convolve, [S(20), S(4)]),
    "interpolation": case(lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2), [S(6)]),
    "nearest": case(
        lambda x: jnp.argmin(jnp.abs(x[:, None] - x[None]) + jnp.eye(6) * 9, 1), [S(6)]
    ),
    "checkpoint": case(jax.grad(jax.checkpoint(lambda v: jnp.sin(jnp.cos(v)).sum())), [S(7)]),
    "triangular products": case(
        lambda a, x: (jnp.tril(a) @ x, jnp.trace(a), jnp.diag(a)), [S(9, 9), S(9)]
    ),
    "slice at an index": case(
        lambda x, i: (
            lax.dynamic_slice(x, (i,), (3,)),
            lax.dynamic_update_slice(x, jnp.ones(2, x.dtype), (i,)),
        ),
        [S(9), I()],
    ),
    "gather and scatter rows": case(
        lambda x, i: (x[i], x.at[i].add(1.0), x.at[i].set(2.0)), [S(6, 4), I(5)]
    ),
    "gather elements": case(
        lambda x, i, k: (x[i, k], jnp.take_along_axis(x, i[None] % 4, 1)), [S4(6, 5), I(5), I(5)]
    ),
    "histogram": case(lambda i: jnp.zeros(8, I4).at[i].add(1), [I(20)]),
    "one hot": case(lambda i: jax.nn.one_hot(i, 5), [I(7)]),
    # loops and branches
    "fori, 10 times": case(lambda x: lax.fori_loop(0, 10, lambda i, a: a + jnp.cos(a), x), [S(8)]),
    "fori, an input's number of times": case(
        lambda n, x: lax.fori_loop(0, n, lambda i, a: jnp.sin(a) + i, x), [I(), S(3)]
    ),
    "while halved": case(halved, [S()], lambda rng: [rng.uniform(-1, 1e3, ())]),
    "while grown": case(grown, [S(4)], lambda rng: [rng.uniform(1, 2, 4)]),
    "switch": case(
        lambda i, x: lax.switch(i, [jnp.sin, lambda v: v * 2, lambda v: v + 1], x), [I(), S(5)]
    ),
    "switch of large branches": case(
        lambda i, x: lax.switch(i, [lambda v: runge_kutta(v)[0], jnp.sin, jnp.cumsum], x),
        [I(), S(2)],
    ),
    "cond": case(
        lambda p, x: lax.cond(p, lambda v: jnp.sin(v) @ jnp.ones(6), lambda v: (v * v).sum(), x),
        [S(dtype=B1), S(6)],
    ),
    "cond of a loop": case(
        lambda x: lax.cond(
            x.sum() > 0, lambda v: runge_kutta(v)[0], lambda v: jnp.outer(v, v).sum(1), x
        ),
        [S(2)],
    ),
    "cond in a while": case(cond_in_while, [S(2)]),
    "scan": case(
        lambda x: lax.scan(lambda c, _: (c * 0.9 + 0.1, c.sum()), x, None, length=20), [S(4)]
    ),
    "scan of a switch": case(scanned_switch, [S(4)]),
    "scan over rows": case(
        lambda x: lax.scan(lambda c, row: (c + jnp.sin(row), c * row), x[0], x), [S4(6, 3)]
    ),
    "gradient of a scan": case(
        jax.grad(lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=9)[0].sum()),
        [S(4)],
    ),
    "runge-kutta, 100 steps": case(lambda y: runge_kutta(y, 100), [S(2)]),
    "odeint": case(pendulum, [S(2), S(5)], lambda rng: [rng.normal(size=2), np.linspace(0, 1, 5)]),
    "nested loops": case(nested_loops, [S(6)]),
    "loop over tuples": case(loop_over_tuples, [S(3)]),
    # dtypes
    **{
        f"table of {dtype}": case(table_of(dtype), [I()])
        for dtype in (*INTEGERS, B1, "float16", "bfloat16", F4, F8, "complex64", "complex128")
    },
    **{
        f"arithmetic of {dtype}": case(
            lambda x: (jnp.sin(x) + x * x, x.sum(), x.astype(F4)), [S(9, dtype=dtype)]
        )
        for dtype in ("float16", "bfloat16")
    },
    **{
        f"arithmetic of {dtype}": case(
            lambda x: (jnp.exp(x) * x, x.real, jnp.abs(x), x.conj().sum(), x / (x + 1)),
            [S(6, dtype=dtype)],
        )
        for dtype in ("complex64", "complex128")
    },
    "bool": case(
        lambda a, b: (a & b, ~a, a.any(), a.sum(), jnp.where(b, 1.5, 2.5)), [S(5, dtype=B1)] * 2
    ),
    "integer division": case(lambda x, y: (x // y, x % y, lax.clz(x)), [I(9), I(9)]),
    "casts of float64": case(lambda x: [x.astype(d) for d in (F4, I4, I8, B1, "uint8")], [S(6)]),
    "casts to half precision": case(lambda x: (x.astype("bfloat16"), x.astype("float16")), [S(6)]),
    "casts of int32": case(
        lambda x: [x.astype(d) for d in (F4, B1, "int8", "uint16", "complex64")], [I(6)]
    ),
    "cast to float8": case(lambda x: x.astype("float8_e4m3fn").astype(F4), [S4(5)]),
    "cast to int4": case(lambda x: x.astype("int4").astype("int8"), [S(5, dtype="int8")]),
    "bit cast": case(lambda x: lax.bitcast_convert_type(x, np.int32), [S4(5)]),
    "reduced precision": case(lambda x: lax.reduce_precision(x, 5, 7), [S4(9)]),
    "random bits": case(lambda k: jax.random.bits(key(k), (7,)), [S(2, dtype=U4)]),
    "random uniform": case(lambda k: jax.random.uniform(key(k), (5,)), [S(2, dtype=U4)]),
    "random normal": case(lambda k: jax.random.normal(key(k), (4,)), [S(2, dtype=U4)]),
    "random generator": case(lambda k: lax.rng_bit_generator(k, (5,), np.uint32), [S(4, dtype=U4)]),
    # refused
    "sort": case(jnp.sort, [S(12)]),
    "top k": case(lambda x: lax.top_k(x, 3), [S4(12)]),
    "fft": case(lambda x: jnp.fft.fft(x).real, [S4(16)]),
    "matrix product 200": case(lambda a, b: a @ b, [S4(200, 200), S4(200, 200)]),
    "inverse": case(lambda x: x - jnp.linalg.inv(jnp.eye(2) + jnp.outer(x, x)) @ x, [S(2)]),
}
