# SPDX-License-Identifier: Apache-2.0
"""Lowers JAX functions to programs. Importing this package does not import JAX."""

from cyxla.lowering.lower import LARGE_CONSTANTS_BYTES, lower

__all__ = ["LARGE_CONSTANTS_BYTES", "lower"]
