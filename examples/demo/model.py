# SPDX-License-Identifier: Apache-2.0
"""The model of the demo: penalised logistic regression on the breast-cancer table."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer

import cyxla

Array = npt.NDArray[np.float64]

OPTIMUM = 37.758946  # minimum of the objective


class Data(NamedTuple):
    """The table: features (569 x 30) of mean 0 and deviation 1, and labels (569) of -1 and 1."""

    features: Array
    labels: Array


class Minimum(NamedTuple):
    """The minimum that a solver found."""

    value: float
    evaluations: int


def load_data() -> Data:
    """Return scikit-learn's table with standardised columns."""
    table = load_breast_cancer()
    features = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0)
    return Data(aligned_copy(features), aligned_copy(2.0 * table.target - 1.0))


def aligned_copy(array: Array) -> Array:
    """Return a copy at a 64-byte-aligned address, where programs read it in place."""
    copy = cyxla.aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def start() -> Array:
    """Return the start of every solver: 30 weights and the intercept, all zero."""
    return aligned_copy(np.zeros(31))


def objective(parameters: jax.Array, features: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the negative log-likelihood plus 1/2 |w|^2; the intercept is not penalised."""
    weights, intercept = parameters[:-1], parameters[-1]
    margins = labels * (features @ weights + intercept)
    return jnp.sum(jax.nn.softplus(-margins)) + 0.5 * jnp.vdot(weights, weights)


def numpy_objective(parameters: Array, data: Data) -> tuple[float, Array]:
    """Return the value and gradient of `objective`, written by hand without JAX."""
    weights, intercept = parameters[:-1], parameters[-1]
    margins = data.labels * (data.features @ weights + intercept)
    value = np.logaddexp(0.0, -margins).sum() + 0.5 * weights @ weights
    slopes = -data.labels / (1.0 + np.exp(margins))
    return float(value), np.append(data.features.T @ slopes + weights, slopes.sum())
