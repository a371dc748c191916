# SPDX-License-Identifier: Apache-2.0
"""Finds jaxlib's FFI handlers for the CPU: LAPACK and sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["cpu_targets"]


def cpu_targets() -> Iterator[tuple[str, object, int]]:
    """Yield name, capsule and API version of each handler, without importing jax.

    Raises:
        ImportError: jaxlib or SciPy is not installed.
    """
    from jaxlib import cpu_sparse, lapack
    from jaxlib.cpu import _lapack

    # Sets the pointers to SciPy's LAPACK; the handlers crash without them.
    _lapack.initialize()
    for registrations in (lapack.registrations(), cpu_sparse.registrations()):
        yield from registrations["cpu"]
