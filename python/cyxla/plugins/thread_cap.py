# SPDX-License-Identifier: Apache-2.0
"""The cap on the threads of the plugin's pool: where it comes from, how the plugin learns it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from cyxla.errors import ArgumentError
from cyxla.plugins.options import OptionValue

__all__ = [
    "THREADS_ENVIRONMENT_VARIABLE",
    "check_devices",
    "check_pool_variables",
    "checked_threads",
    "max_threads",
    "threads_from_environment",
]

THREADS_ENVIRONMENT_VARIABLE = "CYXLA_NUM_THREADS"
"""Names the environment variable with the most threads that the plugin's pool may have."""

# While it makes a client, XLA sizes its pool by the first of these that holds a number of 32 bits.
# It does not read them again.
POOL_SIZE_VARIABLES: Final = ("PJRT_NPROC", "NPROC")
_NUMBER: Final = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)

# XLA starts every thread of its pool at once, and where the system refuses one it waits forever.
_THREADS_PER_CPU: Final = 256


def max_threads() -> int:
    """Return the size of the largest pool that cyxla lets XLA make on this machine."""
    return _THREADS_PER_CPU * (os.cpu_count() or 1)


def checked_threads(threads: object, where: str = "threads") -> int:
    """Return a number of threads.

    Raises:
        ArgumentError: it is not an int from 1 to `max_threads()`; the message names `where` it came
            from.
    """
    if type(threads) is not int or not 1 <= threads <= max_threads():
        raise ArgumentError(f"{where} is {threads!r}; it takes an int from 1 to {_limit()}")
    return threads


def check_pool_variables() -> None:
    """Refuse variables by which XLA would make a pool of more threads than `max_threads()`.

    Call it before XLA makes a client, JAX's own included, unless it is given a cap.

    Raises:
        ArgumentError: the variable that XLA would read is too large.
    """
    for name in POOL_SIZE_VARIABLES:
        text = os.environ.get(name, "")
        number = int(text) if _NUMBER.fullmatch(text) else None
        if number is None or not -(2**31) <= number < 2**31:
            continue
        if number > max_threads():
            raise ArgumentError(
                f"the environment variable {name} is {text}, and XLA would hang while it starts"
                f" that many threads; unset it, or set it to at most {_limit()}"
            )
        return


def _limit() -> str:
    return f"{max_threads()} ({_THREADS_PER_CPU} for each CPU of this machine)"


def threads_from_environment() -> int | None:
    """Return the cap in `CYXLA_NUM_THREADS`, None if it is unset or empty.

    Raises:
        ArgumentError: it is not a cap; or there is none, and XLA's own variables ask for too many.
    """
    text = os.environ.get(THREADS_ENVIRONMENT_VARIABLE)
    if not text:
        check_pool_variables()
        return None
    where = f"the environment variable {THREADS_ENVIRONMENT_VARIABLE}"
    return checked_threads(int(text) if text.isascii() and text.isdigit() else text, where)


def check_devices(options: Mapping[str, OptionValue], threads: int | None) -> None:
    """Refuse more devices than the pool may have threads: it has one for each device.

    Raises:
        ArgumentError: there are more devices than `threads`, a cap that the plugin would then
            ignore, or than `max_threads()`.
    """
    devices = options.get("cpu_device_count", 1)
    if not isinstance(devices, int):
        return
    if devices > max_threads():
        raise ArgumentError(
            f"the option cpu_device_count is {devices}, and the pool has a thread for each device;"
            f" ask for at most {_limit()}"
        )
    if threads is not None and devices > threads:
        raise ArgumentError(
            f"threads={threads} does nothing with the option cpu_device_count={devices}: the pool "
            "has a thread for each device. Ask for at most as many devices as threads"
        )
