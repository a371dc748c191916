# SPDX-License-Identifier: Apache-2.0
"""Finds minima of functions written in JAX, on threads that do not need the GIL.

A function takes a vector of doubles and returns its value and gradient, as those of
`jax.value_and_grad` do.
"""

from minima.descent import descend
from minima.evaluation import evaluate

__all__ = ["descend", "evaluate"]
