# SPDX-License-Identifier: Apache-2.0
"""An entry of the program table, and makers of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from support.programs.values import values

Maker: TypeAlias = Callable[[np.random.Generator], list[Any]]


class Kind(NamedTuple):
    """A program for several dtypes: `arguments` makes its inputs in float64."""

    function: Callable[..., Any]
    arguments: Maker


class Program(NamedTuple):
    """A function, the maker of its arguments (arrays, or pytrees of them), and its users.

    Tags:
        jit: `test_programs` compares it with `jax.jit`.
        matrix: so does `make matrix`, on every JAX with every plugin.
        brief: so does every run of the tests, with every plugin.
        callback: it calls Python.
        direct: the direct route is compared with the plugin's, on arguments of every sort.
        converges: with other arguments than those of the maker a loop may not end.
    """

    function: Callable[..., Any]
    arguments: Maker
    tags: frozenset[str]

    def tagged(self, *tags: str) -> Program:
        """The same with more tags."""
        return self._replace(tags=self.tags | set(tags))


def case(
    function: Callable[..., Any], specs: Iterable[jax.ShapeDtypeStruct], own: Maker | None = None
) -> Program:
    """An entry for the direct route; `own` makes arguments with which its loop ends."""
    specs = list(specs)

    def numbers(rng: np.random.Generator) -> list[Any]:
        return [values("numbers", rng, spec.shape, spec.dtype) for spec in specs]

    tags = ("direct", "converges") if own else ("direct",)
    return Program(function, own or numbers, frozenset(tags))


def for_matrix(function: Callable[..., Any], arguments: Maker, *tags: str) -> Program:
    """An entry for the matrix, in its brief set too."""
    return Program(function, arguments, frozenset(("matrix", "brief", *tags)))


def in_dtype(kind: Kind, dtype: str, *tags: str) -> Program:
    """A kind of program in one dtype; complex arguments get an imaginary part."""

    def arguments(rng: np.random.Generator) -> list[Any]:
        made = kind.arguments(rng)
        if np.dtype(dtype).kind == "c":
            made = jax.tree.map(lambda array: array + 0.1j * _hermitian_part(rng, array), made)
        return jax.tree.map(lambda array: np.asarray(array).astype(dtype), made)

    return Program(kind.function, arguments, frozenset(tags))


def _hermitian_part(rng: np.random.Generator, array: Any) -> Any:
    """The imaginary part that keeps a symmetric matrix hermitian."""
    part = rng.normal(size=array.shape)
    is_square = array.ndim == 2 and array.shape[0] == array.shape[1]
    return part - part.T if is_square else part


def vector(size: int = 7) -> Maker:
    return lambda rng: [rng.normal(size=size)]


def unit(size: int = 7) -> Maker:
    """Values strictly between 0 and 1."""
    return lambda rng: [rng.uniform(0.05, 0.95, size=size)]


def matrix(*shape: int) -> Maker:
    return lambda rng: [rng.normal(size=shape)]


def well_conditioned(size: int = 6) -> Maker:
    return lambda rng: [rng.normal(size=(size, size)) + size * np.eye(size)]


def positive_definite(size: int = 6, *more: int) -> Maker:
    def make(rng: np.random.Generator) -> list[Any]:
        a = rng.normal(size=(size, size))
        return [a @ a.T + size * np.eye(size), *(rng.normal(size=(size, n)) for n in more)]

    return make


def both(*makers: Maker) -> Maker:
    return lambda rng: [array for maker in makers for array in maker(rng)]


def tridiagonal(size: int = 6) -> Maker:
    """The three diagonals of a matrix in which the middle one dominates, and two columns."""
    return lambda rng: [
        np.concatenate([[0], rng.uniform(0, 1, size - 1)]),
        rng.uniform(4, 5, size),
        np.concatenate([rng.uniform(0, 1, size - 1), [0]]),
        rng.normal(size=(size, 2)),
    ]
