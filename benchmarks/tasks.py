# SPDX-License-Identifier: Apache-2.0
"""The tasks: a JAX function, its inputs, and the tolerance of its results."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Task:
    """A function that every rival calls.

    Attributes:
        name: the name that `--only` and the rivals use.
        title: for tables and plots.
        function: takes the inputs as positional arrays and returns a tuple of arrays.
        make_inputs: makes C-contiguous inputs from a random generator.
        dtype: float64 or float32; results must agree with JAX to 1e-10 or 1e-5, relatively.
        is_large: memory traffic dominates the cost of a call, so one call is a sample.
    """

    name: str
    title: str
    function: Callable[..., tuple[Any, ...]]
    make_inputs: Callable[[np.random.Generator], list[Array]]
    dtype: DTypeLike = np.float64
    is_large: bool = False

    @property
    def tolerance(self) -> float:
        """The relative tolerance of every element."""
        return 1e-10 if np.dtype(self.dtype) == np.float64 else 1e-5

    @property
    def zero_tolerance(self) -> float:
        """The absolute tolerance, as a fraction of the largest element of the same output."""
        return 1e-14 if np.dtype(self.dtype) == np.float64 else 1e-6


def uniform(
    *shapes: tuple[int, ...], dtype: DTypeLike = np.float64, low: float = 0.1, high: float = 1.0
) -> Callable[[np.random.Generator], list[Array]]:
    """A maker of inputs of the given shapes with values in [low, high)."""
    return lambda generator: [
        np.array(generator.uniform(low, high, shape), dtype) for shape in shapes
    ]


def _rosenbrock(x: Any) -> Any:
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock(x: Any) -> tuple[Any, ...]:
    """Value and gradient of the Rosenbrock function of n variables."""
    return jax.value_and_grad(_rosenbrock)(x)


def _objective(x: Any) -> Any:
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


def _constraints(x: Any) -> Any:
    return jnp.stack([jnp.prod(x), jnp.sum(x**2)])


def hock_schittkowski_71(x: Any, scale: Any, multipliers: Any) -> tuple[Any, ...]:
    """Problem 71: value, gradient, constraints, their Jacobian, Hessian of the Lagrangian."""

    def lagrangian(x: Any) -> Any:
        return scale * _objective(x) + multipliers @ _constraints(x)

    value, gradient = jax.value_and_grad(_objective)(x)
    jacobian = jax.jacrev(_constraints)(x)
    return value, gradient, _constraints(x), jacobian, jax.hessian(lagrangian)(x)


def _robertson(y: Any) -> Any:
    slow, fast, middle = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
    return jnp.stack([middle - slow, slow - middle - fast, fast])


def robertson(y: Any) -> tuple[Any, ...]:
    """Right-hand side and Jacobian of the Robertson problem, a stiff system of three species."""
    return _robertson(y), jax.jacfwd(_robertson)(y)


def _loss(parameters: tuple[Any, ...], x: Any, target: Any) -> Any:
    w1, b1, w2, b2, w3, b3 = parameters
    hidden = jnp.tanh(jnp.tanh(x @ w1 + b1) @ w2 + b2)
    return jnp.mean((hidden @ w3 + b3 - target) ** 2)


def perceptron(*arrays: Any) -> tuple[Any, ...]:
    """Value and gradient of the loss of a perceptron: w1, b1, w2, b2, w3, b3, x, target."""
    *parameters, x, target = arrays
    value, gradients = jax.value_and_grad(_loss)(tuple(parameters), x, target)
    return value, *gradients


def tanh_product(a: Any, x: Any) -> tuple[Any, ...]:
    """tanh(A x)."""
    return (jnp.tanh(a @ x),)


def twice_sine(x: Any) -> tuple[Any, ...]:
    """2 sin(x), element by element."""
    return (jnp.sin(x) * 2,)


def scale_and_shift(x: Any) -> tuple[Any, ...]:
    """2 x + 1, element by element: mostly memory traffic."""
    return (x * 2 + 1,)


def sum_of_arrays(*arrays: Any) -> tuple[Any, ...]:
    """The sum of all inputs, element by element."""
    return (functools.reduce(operator.add, arrays),)


def _perceptron_inputs(generator: np.random.Generator) -> list[Array]:
    shapes = [*((32, 32), (32,)) * 3, (16, 32), (16, 32)]
    return [(generator.standard_normal(shape) * 0.3).astype(np.float32) for shape in shapes]


TASKS: tuple[Task, ...] = (
    Task("rosenbrock-2", "Rosenbrock value, gradient\nn = 2", rosenbrock, uniform((2,))),
    Task("rosenbrock-100", "Rosenbrock value, gradient\nn = 100", rosenbrock, uniform((100,))),
    Task(
        "hs71",
        "Hock-Schittkowski 71\nfive outputs in one program",
        hock_schittkowski_71,
        uniform((4,), (), (2,), low=1.0, high=5.0),
    ),
    Task("robertson", "Robertson\nright-hand side, Jacobian", robertson, uniform((3,))),
    Task(
        "mlp",
        "3-layer perceptron, 32 wide\nvalue, gradient, batch 16",
        perceptron,
        _perceptron_inputs,
        np.float32,
    ),
    Task(
        "tanh-64",
        "tanh(A x)\n64 x 64",
        tanh_product,
        uniform((64, 64), (64,), dtype=np.float32, low=-0.3, high=0.3),
        np.float32,
    ),
    Task("sin-3", "2 sin(x)\n3 floats", twice_sine, uniform((3,), dtype=np.float32), np.float32),
    Task(
        "elementwise-1e7",
        "2 x + 1\n10 million floats",
        scale_and_shift,
        uniform((10_000_000,), dtype=np.float32),
        np.float32,
        is_large=True,
    ),
)


def task_of_inputs(count: int) -> Task:
    """The sum of `count` arrays of four floats, for the cost of an input."""
    shapes = [(4,)] * count
    return Task(
        f"inputs-{count}",
        f"sum of {count} arrays of 4 floats",
        sum_of_arrays,
        uniform(*shapes, dtype=np.float32),
        np.float32,
    )


def task_of_size(size: int) -> Task:
    """2 x + 1 on `size` floats, for the cost of a byte."""
    return Task(
        f"size-{size}",
        f"2 x + 1 on {size} floats",
        scale_and_shift,
        uniform((size,), dtype=np.float32),
        np.float32,
        is_large=size >= 1_000_000,
    )


def task_named(name: str) -> Task:
    """The task of the list with this name."""
    return next(task for task in TASKS if task.name == name)


def shapes_of(arrays: Sequence[Array]) -> list[jax.ShapeDtypeStruct]:
    """The shapes and dtypes that `jax.jit(f).lower` and `cyxla.lower` take."""
    return [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
