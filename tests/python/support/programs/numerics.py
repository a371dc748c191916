# SPDX-License-Identifier: Apache-2.0
"""Linear algebra in every family of LAPACK handlers, special functions and sparse matrices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax import lax
from jax.experimental import sparse

from support.programs.entry import (
    Kind,
    both,
    matrix,
    positive_definite,
    tridiagonal,
    unit,
    vector,
    well_conditioned as regular,
)


def real_matrices(a: Any) -> Any:
    """Functions of real matrices only."""
    update = lax.linalg.cholesky_update(jnp.linalg.cholesky(a).T, a[0])
    return update, lax.linalg.symmetric_product(a, a, alpha=0.5, beta=2.0)


def eigenvalues_of_tridiagonal(a: Any) -> Any:
    return jsp.linalg.eigh_tridiagonal(jnp.diag(a), jnp.diag(a, 1))


def exponential_derivative(a: Any) -> Any:
    return jax.jvp(jsp.linalg.expm, (0.1 * a,), (a,))


# In the four dtypes of LAPACK.
LINEAR_ALGEBRA: dict[str, Kind] = {
    "cholesky of a complex": Kind(jnp.linalg.cholesky, positive_definite()),
    "solve and invert": Kind(
        lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.slogdet(a)),
        both(regular(), matrix(6, 2)),
    ),
    "lu with pivots": Kind(lambda a: (jsp.linalg.lu_factor(a), lax.linalg.lu(a)), regular()),
    "qr, complete": Kind(lambda a: jnp.linalg.qr(a, mode="complete"), matrix(6, 4)),
    "qr with pivoting": Kind(lambda a: jsp.linalg.qr(a, pivoting=True), matrix(6, 4)),
    "product with q": Kind(jsp.linalg.qr_multiply, both(matrix(5, 5), matrix(5, 5))),
    "hermitian eigenvalues": Kind(jnp.linalg.eigh, positive_definite()),
    "svd, all vectors": Kind(jnp.linalg.svd, matrix(5, 3)),
    "singular values": Kind(lambda a: jnp.linalg.svd(a, compute_uv=False), matrix(5, 3)),
    "svd by qr iteration": Kind(
        lambda a: lax.linalg.svd(a, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.QR),
        matrix(5, 3),
    ),
    "both eigenvectors": Kind(
        lambda a: lax.linalg.eig(a, compute_left_eigenvectors=True), regular()
    ),
    "schur form": Kind(lax.linalg.schur, regular()),
    "square root": Kind(jsp.linalg.sqrtm, positive_definite()),
    "hessenberg": Kind(lambda a: jsp.linalg.hessenberg(a, calc_q=True), regular()),
    "to tridiagonal": Kind(lax.linalg.tridiagonal, positive_definite()),
    "tridiagonal solve": Kind(lax.linalg.tridiagonal_solve, tridiagonal()),
    "triangular solve, right": Kind(
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, transpose_a=True),
        both(regular(), matrix(2, 6)),
    ),
    "polar": Kind(jsp.linalg.polar, regular()),
    "sylvester": Kind(
        jsp.linalg.solve_sylvester,
        both(regular(4), regular(4), matrix(4, 4)),
    ),
}

REAL: dict[str, Kind] = {
    "real matrices": Kind(real_matrices, positive_definite()),
    "tridiagonal eigenvalues": Kind(eigenvalues_of_tridiagonal, positive_definite()),
    "derivative of expm": Kind(exponential_derivative, regular()),
    "gradient through eigh": Kind(
        jax.grad(lambda a: jnp.linalg.eigh(a)[0][-1] + jnp.linalg.svd(a)[1].sum()),
        positive_definite(),
    ),
    "error functions": Kind(
        lambda x: (
            jsp.special.erf_inv(x) if hasattr(jsp.special, "erf_inv") else lax.erf_inv(x),
            jsp.special.ndtr(x),
            jsp.special.ndtri(x),
            jsp.special.log_ndtr(x),
        ),
        unit(),
    ),
    "gamma functions": Kind(
        lambda x: (
            jsp.special.gamma(x),
            jsp.special.gammaincc(x, 2 * x),
            jsp.special.beta(x, 1 + x),
            jsp.special.betainc(x, 1 + x, x),
            jsp.special.poch(x, 2.0),
            jsp.special.factorial(x),
            jsp.special.multigammaln(x + 3, 2),
        ),
        unit(),
    ),
    "derivatives of gamma": Kind(
        lambda x: (
            jsp.special.polygamma(2, x),
            jsp.special.zeta(1 + x, x),
            jax.grad(lambda v: jsp.special.gammaln(v).sum())(x),
        ),
        unit(),
    ),
    "exponential integrals": Kind(
        lambda x: (jsp.special.expi(x), jsp.special.exp1(x), jsp.special.expn(3, x)), unit()
    ),
    "bessel functions": Kind(
        lambda x: (
            jsp.special.i0(x),
            jsp.special.i1(x),
            jsp.special.i1e(x),
            jsp.special.bessel_jn(x, v=4),
        ),
        unit(),
    ),
    "entropies": Kind(
        lambda x, y: (jsp.special.entr(x), jsp.special.rel_entr(x, y), jsp.special.kl_div(x, y)),
        both(unit(), unit()),
    ),
    "spence and hypergeometric": Kind(
        lambda x: (jsp.special.spence(x), jsp.special.hyp1f1(1.5, 2.5, x)), unit()
    ),
    "densities": Kind(
        lambda x: (
            jsp.stats.norm.logpdf(x),
            jsp.stats.gamma.logpdf(x, 2.0),
            jsp.stats.t.logpdf(x, 3.0),
            jsp.stats.beta.cdf(x, 2.0, 3.0),
        ),
        unit(),
    ),
    "gradients of chlo": Kind(
        jax.grad(lambda x: (jsp.special.erf(x) + jnp.arcsin(x) * jnp.sinh(x) + jnp.tan(x)).sum()),
        unit(),
    ),
    "transforms of real data": Kind(
        lambda x: (jnp.fft.hfft(x), jnp.fft.fftshift(x), jnp.fft.rfftn(x), jsp.fft.dct(x)),
        matrix(4, 10),
    ),
    "sort by several keys": Kind(
        lambda x, y: (
            lax.sort((jnp.round(x), y), num_keys=2),
            jnp.unique(x, size=9),
            lax.top_k(y, 4),
        ),
        both(vector(9), vector(9)),
    ),
    "convolution with groups": Kind(
        lambda x, k: lax.conv_general_dilated(
            x,
            k,
            (1, 1),
            ((1, 1), (0, 1)),
            feature_group_count=2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        ),
        both(matrix(2, 6, 5, 4), matrix(3, 2, 2, 6)),
    ),
    "gradient of a convolution": Kind(
        jax.grad(lambda x, k: (lax.conv(x, k, (2, 1), "SAME") ** 2).sum(), (0, 1)),
        both(matrix(1, 2, 6, 5), matrix(3, 2, 3, 3)),
    ),
    "pooling gradient": Kind(
        jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (2, 3), "SAME").sum()),
        matrix(6, 9),
    ),
    "scatter of windows": Kind(
        lambda x: (
            x.at[jnp.array([1, 1, 4])].multiply(2.0),
            x.at[:, 2].min(0.1),
            lax.dynamic_update_slice(x, jnp.ones((2, 2), x.dtype), (1, 1)),
        ),
        matrix(6, 5),
    ),
    "loop with a branch": Kind(
        lambda x: lax.while_loop(
            lambda s: s[1] < 20,
            lambda s: (lax.cond(s[1] % 3 == 0, jnp.sin, lambda v: v * 1.1, s[0]), s[1] + 1),
            (x, 0),
        ),
        vector(),
    ),
    "gradient through a scan": Kind(
        jax.grad(lambda x: lax.scan(lambda c, v: (jnp.tanh(c + v), c * v), x[0], x)[1].sum()),
        vector(),
    ),
    "root and integral": Kind(
        lambda x: lax.custom_root(
            lambda v: v * v * v - x,
            jnp.ones_like(x),
            lambda f, v: lax.fori_loop(0, 30, lambda _, w: w - f(w) / (3 * w * w), v),
            lambda g, y: y / g(jnp.ones_like(y)),
        ),
        unit(),
    ),
    "conjugate gradients": Kind(
        lambda a, b: jsp.sparse.linalg.cg(lambda v: a @ v, b[:, 0], maxiter=4)[0],
        positive_definite(6, 1),
    ),
    # With the custom call of jax.experimental.sparse and without.
    "sparse by rows": Kind(
        lambda a, b: (
            sparse.BCSR.fromdense(a, nse=36) @ b,
            sparse.BCSR.fromdense(a, nse=36) @ b[:, 0],
        ),
        both(regular(), matrix(6, 3)),
    ),
    "sparse by coordinates": Kind(
        lambda a, b: (
            sparse.BCOO.fromdense(a, nse=36) @ b,
            sparse.sparsify(lambda s: (s * 2).sum())(sparse.BCOO.fromdense(a, nse=36)),
        ),
        both(regular(), matrix(6, 3)),
    ),
    "sparse, the older forms": Kind(
        lambda a, b: (
            sparse.CSR.fromdense(a, nse=36) @ b,
            sparse.COO.fromdense(a, nse=36) @ b[:, 0],
        ),
        both(regular(), matrix(6, 3)),
    ),
    "gradient through sparse": Kind(
        jax.grad(lambda b, a: (sparse.BCOO.fromdense(a, nse=36) @ b).sum() ** 2),
        both(vector(6), regular()),
    ),
}
