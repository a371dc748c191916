# SPDX-License-Identifier: Apache-2.0
"""The programs that every JAX and every plugin must agree on, by name.

Those of `program_table.KINDS` are among them, in both precisions; here stand the rest of linear
algebra (every family of LAPACK handlers, real and complex), special functions, sparse matrices,
random numbers, and what is not about one floating-point type. Those that call Python are in
`callback_programs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import ml_dtypes
import numpy as np
from callback_programs import CALLBACKS
from jax import lax
from jax.experimental import sparse

from direct_functions import integers, key
from direct_table import INTEGERS
from program_table import (
    KINDS,
    Kind,
    both,
    matrix,
    positive_definite,
    unit,
    vector,
    well_conditioned as regular,
)

SINGLE, DOUBLE = ("float32", "complex64"), ("float64", "complex128")
# Relative to the largest value of an output, by the output's type; others must be equal.
TOLERANCES = {
    **dict.fromkeys(SINGLE, 1e-5),
    **dict.fromkeys(DOUBLE, 1e-10),
    "float16": 4 * float(ml_dtypes.finfo("float16").eps),
    "bfloat16": 4 * float(ml_dtypes.finfo("bfloat16").eps),
}


class MatrixProgram(NamedTuple):
    """A function and the maker of its arguments: arrays, or pytrees of them, of the dtypes meant.

    `tolerance` replaces that of an output's type, with the reason why.
    """

    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator], list[Any]]
    tolerance: float | None = None
    reason: str = ""


def tridiagonal(size: int = 6) -> Callable[[np.random.Generator], list[Any]]:
    """The three diagonals of a matrix in which the middle one dominates, and two columns."""
    return lambda rng: [
        np.concatenate([[0], rng.uniform(0, 1, size - 1)]),
        rng.uniform(4, 5, size),
        np.concatenate([rng.uniform(0, 1, size - 1), [0]]),
        rng.normal(size=(size, 2)),
    ]


def real_matrices(a: Any) -> Any:
    """What there is for real matrices alone."""
    update = lax.linalg.cholesky_update(jnp.linalg.cholesky(a).T, a[0])
    return update, lax.linalg.symmetric_product(a, a, alpha=0.5, beta=2.0)


def eigenvalues_of_tridiagonal(a: Any) -> Any:
    return jsp.linalg.eigh_tridiagonal(jnp.diag(a), jnp.diag(a, 1))


def exponential_derivative(a: Any) -> Any:
    return jax.jvp(jsp.linalg.expm, (0.1 * a,), (a,))


# In the four types of LAPACK.
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
    # The custom call of jax.experimental.sparse, and matrices without it.
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


def random_numbers(bits: Any) -> Any:
    keys = jax.random.split(key(bits), 4)
    return (
        [jax.random.key_data(keys), jax.random.bits(keys[0], (9,))],
        jax.random.permutation(keys[1], 10),
        [jax.random.uniform(keys[0], (5,)), jax.random.normal(keys[1], (5,))],
        [jax.random.randint(keys[2], (5,), 0, 100), jax.random.gamma(keys[2], 2.0, (3,))],
        [
            jax.random.categorical(keys[3], jnp.zeros(4), shape=(6,)),
            jax.random.poisson(keys[3], 4.0, (5,)),
        ],
        jax.random.choice(keys[0], jnp.arange(10.0), (4,), replace=False),
    )


def other_generators(bits: Any) -> Any:
    return [
        jax.random.bits(jax.random.wrap_key_data(data, impl=name), (6,))
        for name, data in (("rbg", bits), ("unsafe_rbg", bits), ("threefry2x32", bits[:2]))
    ]


def half_precision(a: Any, x: Any) -> Any:
    return a @ x, jnp.tanh(x), jax.grad(lambda v: jnp.sin(a @ v).sum())(x), jnp.sort(x), x.sum()


def complex_arithmetic(x: Any, y: Any) -> Any:
    return (
        [x * y, x / y, jnp.abs(x), jnp.angle(y), x.conj(), x.real + y.imag],
        [jnp.exp(x), jnp.log(y), jnp.sqrt(x), jnp.sin(y), jnp.tanh(x), x**2, x.sum(), y.prod()],
        [jnp.fft.fft(x), jnp.fft.ifft(y), jnp.outer(x, y) @ y],
    )


def small_floats(x: Any) -> Any:
    return [x.astype(t).astype("float32") for t in ("float8_e4m3fn", "float8_e5m2", "float16")]


def parts(rng: np.random.Generator, dtype: str) -> list[Any]:
    """Two complex vectors away from zero."""
    return [(rng.uniform(0.5, 1, 6) + 1j * rng.uniform(0.5, 1, 6)).astype(dtype) for _ in range(2)]


def words(count: int) -> Callable[[np.random.Generator], list[Any]]:
    return lambda rng: [rng.integers(0, 2**32, count, np.uint32)]


def limits(dtype: str) -> Callable[[np.random.Generator], list[Any]]:
    info = np.iinfo(dtype)
    return lambda rng: [
        np.array([info.min, info.max, 0, 1, 3, 100], dtype),
        np.array([1, 2, 3, 5, 7, 11], dtype),
    ]


OTHERS: dict[str, MatrixProgram] = {
    "random numbers": MatrixProgram(random_numbers, words(2)),
    "other random generators": MatrixProgram(other_generators, words(4)),
    **{f"integers of {dtype}": MatrixProgram(integers(dtype), limits(dtype)) for dtype in INTEGERS},
    **{
        f"half precision, {dtype}": MatrixProgram(
            half_precision,
            lambda rng, dtype=dtype: [a.astype(dtype) for a in both(matrix(8, 8), vector(8))(rng)],
        )
        for dtype in ("float16", "bfloat16")
    },
    **{
        f"complex arithmetic, {dtype}": MatrixProgram(
            complex_arithmetic, lambda rng, dtype=dtype: parts(rng, dtype)
        )
        for dtype in ("complex64", "complex128")
    },
    "small floats": MatrixProgram(small_floats, lambda rng: [rng.normal(size=9).astype("f4")]),
    "bits": MatrixProgram(
        lambda x: (lax.bitcast_convert_type(x, np.uint32), lax.reduce_precision(x, 5, 7)),
        lambda rng: [rng.normal(size=9).astype("f4")],
    ),
    "no inputs": MatrixProgram(lambda: (jnp.arange(4.0), jnp.ones((2, 3))), lambda rng: []),
}


def of_dtype(kind: Kind, dtype: str) -> MatrixProgram:
    """A kind of program in one type; complex arguments get an imaginary part."""

    def arguments(rng: np.random.Generator) -> list[Any]:
        made = kind.arguments(rng)
        if np.dtype(dtype).kind == "c":
            made = jax.tree.map(lambda array: array + 0.1j * hermitian_part(rng, array), made)
        return jax.tree.map(lambda array: np.asarray(array).astype(dtype), made)

    return MatrixProgram(kind.function, arguments)


def hermitian_part(rng: np.random.Generator, array: Any) -> Any:
    """The imaginary part that keeps a symmetric matrix hermitian."""
    part = rng.normal(size=array.shape)
    is_square = array.ndim == 2 and array.shape[0] == array.shape[1]
    return part - part.T if is_square else part


_REAL_TYPES = ("float32", "float64")
_LAPACK_TYPES = ("float32", "complex128", "float64", "complex64")
# Those of program_table.KINDS that hang on versions: custom calls, CHLO, libraries, control flow.
_OFTEN = (
    "inverse trigonometric", "hyperbolic", "special", "incomplete gamma", "logsumexp", "matmul",
    "convolution", "switch", "while", "scan", "cho_solve", "solve a batch", "lu", "expm", "lstsq",
    "pinv", "eig", "schur", "fft", "inverse fft", "sort", "top_k", "median", "gather", "scatter",
    "gradient through a solve", "large constant",
)  # fmt: skip


def _in(kinds: dict[str, Kind], dtypes: tuple[str, ...]) -> dict[str, MatrixProgram]:
    return {f"{name}, {dtype}": of_dtype(kinds[name], dtype) for name in kinds for dtype in dtypes}


def _in_one(kinds: dict[str, Kind], dtypes: tuple[str, ...]) -> list[str]:
    return [f"{name}, {dtypes[i % len(dtypes)]}" for i, name in enumerate(kinds)]


PROGRAMS: dict[str, MatrixProgram] = {
    **_in(KINDS, _REAL_TYPES),
    **_in(LINEAR_ALGEBRA, _LAPACK_TYPES),
    **_in(REAL, _REAL_TYPES),
    **OTHERS,
    **{name: MatrixProgram(*entry) for name, entry in CALLBACKS.items()},
}

# What every run of the tests can afford: each in one type.
BRIEF: dict[str, MatrixProgram] = {
    name: PROGRAMS[name]
    for name in (
        *_in_one({name: KINDS[name] for name in _OFTEN}, _REAL_TYPES),
        *_in_one(LINEAR_ALGEBRA, _LAPACK_TYPES),
        *_in_one(REAL, _REAL_TYPES),
        *(name for name in OTHERS if not name.startswith("integers") or "int8" in name),
        *CALLBACKS,
    )
}
