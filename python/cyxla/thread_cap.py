# SPDX-License-Identifier: Apache-2.0
"""The cap on the threads of the plugin's pool: where it comes from, how the plugin learns it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from cyxla.errors import ArgumentError
from cyxla.plugin_options import OptionValue

__all__ = [
    "THREADS_ENVIRONMENT_VARIABLE",
    "check_devices",
    "checked_threads",
    "pool_size",
    "threads_from_environment",
]

THREADS_ENVIRONMENT_VARIABLE = "CYXLA_NUM_THREADS"
"""Names the environment variable with the most threads that the plugin's pool may have."""

# XLA sizes its pool by this variable while a client is made, and does not read it again.
_POOL_SIZE_VARIABLE = "PJRT_NPROC"
_MAX_THREADS = 65536


def checked_threads(threads: object, where: str = "threads") -> int:
    """Return a number of threads.

    Raises:
        ArgumentError: it is not an int from 1 to 65536; the message names `where` it came from.
    """
    if type(threads) is not int or not 1 <= threads <= _MAX_THREADS:
        raise ArgumentError(f"{where} is {threads!r}; it takes an int from 1 to {_MAX_THREADS}")
    return threads


def threads_from_environment() -> int | None:
    """Return the cap in `CYXLA_NUM_THREADS`, None if it is unset or empty."""
    text = os.environ.get(THREADS_ENVIRONMENT_VARIABLE)
    if not text:
        return None
    where = f"the environment variable {THREADS_ENVIRONMENT_VARIABLE}"
    return checked_threads(int(text) if text.isascii() and text.isdigit() else text, where)


def check_devices(options: Mapping[str, OptionValue], threads: int | None) -> None:
    """Refuse more devices than threads: the plugin then ignores the cap without a word."""
    devices = options.get("cpu_device_count", 1)
    if threads is not None and isinstance(devices, int) and devices > threads:
        raise ArgumentError(
            f"threads={threads} does nothing with the option cpu_device_count={devices}: the pool "
            "has a thread for each device. Ask for at most as many devices as threads"
        )


@contextlib.contextmanager
def pool_size(threads: int | None) -> Iterator[None]:
    """Make clients created inside have at most that many threads in their pool."""
    if threads is None:
        yield
        return
    before = os.environ.get(_POOL_SIZE_VARIABLE)
    os.environ[_POOL_SIZE_VARIABLE] = str(threads)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_POOL_SIZE_VARIABLE, None)
        else:
            os.environ[_POOL_SIZE_VARIABLE] = before
