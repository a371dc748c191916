# SPDX-License-Identifier: Apache-2.0
"""Minima of functions written in JAX, looked for by threads that do not need the GIL.

A function takes a vector of doubles and returns its value and its gradient there, as
`jax.value_and_grad` makes it.
"""

from minima.descent import descend
from minima.evaluation import evaluate

__all__ = ["descend", "evaluate"]
