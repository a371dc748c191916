# SPDX-License-Identifier: Apache-2.0
"""Programs of every kind, as functions over floating-point arrays of one dtype."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from support.programs.entry import (
    Kind,
    both,
    matrix,
    positive_definite,
    unit,
    vector,
    well_conditioned,
)
from support.programs.functions import (
    convolve,
    dict_perceptron,
    newton,
    rosenbrock,
    runge_kutta,
)

LARGE = np.arange(40_000).reshape(200, 200) % 7

KINDS: dict[str, Kind] = {
    # elementwise and special functions
    "documented": Kind(lambda x: jnp.sin(x) * 2, vector(3)),
    "arithmetic": Kind(lambda x, y: (x + y) * x / (y * y + 1) - x**3, both(vector(), vector())),
    "exponentials": Kind(lambda x: (jnp.exp(x), jnp.expm1(x), jnp.exp2(x)), vector()),
    "logarithms": Kind(lambda x: (jnp.log(x), jnp.log1p(x), jnp.log2(x), jnp.sqrt(x)), unit()),
    "trigonometric": Kind(lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.sinc(x)), unit()),
    "inverse trigonometric": Kind(
        lambda x: (jnp.arcsin(x), jnp.arccos(x), jnp.arctan(x), jnp.arctan2(x, 1 - x)), unit()
    ),
    "hyperbolic": Kind(
        lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.tanh(x), jnp.arcsinh(x), jnp.arctanh(x)), unit()
    ),
    "rounding": Kind(lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sign(x)), vector()),
    "where and clip": Kind(lambda x: jnp.where(x > 0, jnp.clip(x, -0.5, 0.5), -x), vector()),
    "special": Kind(
        lambda x: (
            jsp.special.erf(x),
            jsp.special.erfc(x),
            jsp.special.erfinv(x),
            jsp.special.gammaln(x),
            jsp.special.digamma(x),
            jsp.special.expit(x),
            jsp.special.logit(x),
            jsp.special.i0e(x),
            jsp.special.xlogy(x, x),
        ),
        unit(),
    ),
    "incomplete gamma": Kind(lambda x: jsp.special.gammainc(x, x), unit()),
    # reductions
    "reductions": Kind(
        lambda x: (x.sum(0), x.mean(1), x.max(), x.min(0), x.prod(1), x.std(), jnp.ptp(x, 0)),
        matrix(5, 6),
    ),
    "argmax": Kind(
        lambda x: (x.argmax(), x.argmin(1), (x > 0).any(0), (x > 9).all()), matrix(4, 5)
    ),
    "logsumexp": Kind(lambda x: (jsp.special.logsumexp(x), jax.nn.softmax(x)), vector(32)),
    "cumulative": Kind(
        lambda x: (jnp.cumsum(x), jnp.cumprod(x), lax.cummax(x), lax.associative_scan(jnp.add, x)),
        vector(9),
    ),
    "norms": Kind(lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1)), matrix(4, 3)),
    # products and convolution
    "matmul": Kind(lambda a, b: a @ b, both(matrix(33, 17), matrix(17, 5))),
    "einsum": Kind(
        lambda a, b: jnp.einsum("bij,bjk->bki", a, b), both(matrix(2, 3, 4), matrix(2, 4, 5))
    ),
    "outer and kron": Kind(
        lambda a, b: (jnp.outer(a, b), jnp.kron(a, b)), both(vector(), vector())
    ),
    "convolution": Kind(convolve, both(matrix(2, 3, 8, 9), matrix(4, 3, 3, 3))),
    "convolution 1d": Kind(jnp.convolve, both(vector(12), vector(5))),
    "pooling": Kind(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"), matrix(6, 8)
    ),
    # control flow
    "cond": Kind(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), vector()),
    "switch": Kind(
        lambda x: lax.switch(jnp.int32(x[0] > 0) + 1, [jnp.sin, jnp.cos, jnp.tanh], x), vector()
    ),
    "while": Kind(newton, lambda rng: [np.array(7.3)]),
    "fori": Kind(
        lambda x: lax.fori_loop(0, 10, lambda i, a: a + jnp.sin(a) / (i + 1), x), vector()
    ),
    "scan": Kind(runge_kutta, lambda rng: [np.array([1.0, 0.0])]),
    "map": Kind(lambda x: lax.map(lambda row: row * row.sum(), x), matrix(4, 3)),
    # linear algebra
    "cholesky": Kind(jnp.linalg.cholesky, positive_definite()),
    "cho_solve": Kind(
        lambda a, b: jsp.linalg.cho_solve(jsp.linalg.cho_factor(a), b), positive_definite(6, 2)
    ),
    "solve": Kind(jnp.linalg.solve, both(well_conditioned(), matrix(6, 2))),
    "solve a batch": Kind(
        lambda a, b: jnp.linalg.solve(a + 4 * jnp.eye(3), b), both(matrix(5, 3, 3), matrix(5, 3, 2))
    ),
    "inverse and determinant": Kind(
        lambda a: (jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a)), well_conditioned()
    ),
    "qr": Kind(jnp.linalg.qr, matrix(6, 4)),
    "eigh": Kind(jnp.linalg.eigh, positive_definite()),
    "svd": Kind(lambda a: jnp.linalg.svd(a, full_matrices=False), matrix(6, 4)),
    "lu": Kind(jsp.linalg.lu, well_conditioned()),
    "expm": Kind(lambda a: jsp.linalg.expm(0.1 * a), well_conditioned()),
    "lstsq": Kind(lambda a, b: jnp.linalg.lstsq(a, b)[0], both(matrix(8, 3), vector(8))),
    "pinv": Kind(jnp.linalg.pinv, matrix(5, 3)),
    "eig": Kind(jnp.linalg.eig, well_conditioned()),
    "schur": Kind(jsp.linalg.schur, well_conditioned()),
    "triangular solve": Kind(
        lambda a, b: jsp.linalg.solve_triangular(jnp.tril(a), b, lower=True),
        both(well_conditioned(), matrix(6, 2)),
    ),
    "matrix power": Kind(lambda a: jnp.linalg.matrix_power(a / 6, 5), well_conditioned()),
    # Fourier transforms, sorting, indexing
    "fft": Kind(lambda x: (jnp.fft.fft(x), jnp.fft.rfft(x)), vector(30)),
    "inverse fft": Kind(lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2, n=30), vector(30)),
    "fft 2d": Kind(jnp.fft.fft2, matrix(8, 6)),
    "sort": Kind(lambda x: (jnp.sort(x, axis=0), jnp.argsort(x, axis=1)), matrix(6, 7)),
    "top_k": Kind(lambda x: lax.top_k(x, 3), matrix(4, 9)),
    "median": Kind(
        lambda x: (jnp.median(x), jnp.quantile(x, 0.3), jnp.searchsorted(x, 0.1)), unit(9)
    ),
    "gather": Kind(lambda x: (x[jnp.array([2, 0, 5])], x[::-2], jnp.take(x, 1), x[-1]), vector()),
    "scatter": Kind(
        lambda x: (x.at[jnp.array([0, 0, 3])].add(1.5), x.at[2].set(0), x.at[1:3].max(0.2)),
        vector(),
    ),
    "segment sum": Kind(
        lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 0, 2, 2, 1, 0]), num_segments=4), vector()
    ),
    "reshape": Kind(
        lambda x: (x.reshape(4, 6), x.T, jnp.concatenate([x, x]), jnp.pad(x, 1), jnp.flip(x, 0)),
        matrix(3, 8),
    ),
    "interpolate": Kind(lambda x: jnp.interp(0.5, jnp.sort(x), x), unit()),
    # transformations
    "vmap": Kind(jax.vmap(lambda a, b: a @ jnp.sin(b)), both(matrix(4, 3, 3), matrix(4, 3))),
    "value and gradient": Kind(jax.value_and_grad(rosenbrock), vector(10)),
    "jacobians": Kind(
        lambda x: (jax.jacfwd(jnp.sin)(x), jax.jacrev(lambda v: jnp.outer(v, v).sum(0))(x)),
        vector(),
    ),
    "hessian": Kind(jax.hessian(rosenbrock), vector(5)),
    "vjp and jvp": Kind(
        lambda x, v: (jax.vjp(rosenbrock, x)[1](1.0), jax.jvp(rosenbrock, (x,), (v,))),
        both(vector(), vector()),
    ),
    "custom derivative": Kind(
        jax.grad(lambda x: jax.nn.relu(x).sum() + jax.nn.silu(x).sum()), vector()
    ),
    "gradient through a solve": Kind(
        jax.grad(lambda a, b: jnp.linalg.solve(a, b).sum()), both(well_conditioned(), matrix(6, 2))
    ),
    "checkpoint": Kind(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), vector()),
    # containers and shapes
    "pytree": Kind(
        lambda tree, x: {
            "out": dict_perceptron(tree, x),
            "none": None,
            "in": [x, (tree["w"],)],
        },
        lambda rng: [
            {"w": rng.normal(size=(4, 5)), "v": rng.normal(size=5)},
            rng.normal(size=(6, 4)),
        ],
    ),
    "scalar": Kind(lambda x, y: x * y + 1, lambda rng: [np.array(3.5), np.array(-2.0)]),
    "empty": Kind(
        lambda x: (x.sum(), x * 2, jnp.zeros((0, 3)), x.sum(0)), lambda rng: [np.zeros((0, 4))]
    ),
    "one output twice": Kind(lambda x: (x, x * 1.0, x, x + x, x), vector()),
    "no output": Kind(lambda x: (), vector()),
    "unused inputs": Kind(lambda a, b, c: a + c, both(vector(3), vector(5), vector(3))),
    "constant output": Kind(lambda x: (jnp.arange(4), jnp.eye(2)), vector()),
    "large constant": Kind(lambda x: (LARGE * 0.01) @ x, vector(200)),
    "many inputs": Kind(lambda *arrays: sum(arrays), both(*[vector(2)] * 40)),
}
