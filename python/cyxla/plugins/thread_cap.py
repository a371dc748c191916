# SPDX-License-Identifier: Apache-2.0
"""Checks the size of the plugin's thread pool and the variables that set it."""

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
"""The environment variable with the maximum size of the plugin's thread pool."""

# When it makes a client, XLA sizes its thread pool by the first of these with a 32-bit number.
POOL_SIZE_VARIABLES: Final = ("PJRT_NPROC", "NPROC")
_NUMBER: Final = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)

# XLA starts all threads of its pool at once; if the system refuses one, XLA hangs.
_THREADS_PER_CPU: Final = 256


def max_threads() -> int:
    """Return the size of the largest thread pool that cyxla allows on this machine."""
    return _THREADS_PER_CPU * (os.cpu_count() or 1)


def checked_threads(threads: object, where: str = "threads") -> int:
    """Return `threads`; raise ArgumentError unless it is an int from 1 to `max_threads()`.

    `where` names the source of the value in the message.
    """
    if type(threads) is not int or not 1 <= threads <= max_threads():
        raise ArgumentError(f"{where} is {threads!r}; it takes an int from 1 to {_limit()}")
    return threads


def check_pool_variables() -> None:
    """Raise ArgumentError if XLA's own variables ask for more than `max_threads()` threads.

    Call this before XLA, JAX's own included, makes a client without an explicit thread count.
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
        ArgumentError: the value is not a valid cap, or it is unset and XLA's own variables ask for
            too many threads.
    """
    text = os.environ.get(THREADS_ENVIRONMENT_VARIABLE)
    if not text:
        check_pool_variables()
        return None
    where = f"the environment variable {THREADS_ENVIRONMENT_VARIABLE}"
    return checked_threads(int(text) if text.isascii() and text.isdigit() else text, where)


def check_devices(options: Mapping[str, OptionValue], threads: int | None) -> None:
    """Raise ArgumentError for more devices than `max_threads()` or than the cap `threads`.

    The pool has at least one thread for each device, so the plugin would ignore a lower cap.
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
            f"threads={threads} has no effect with the option cpu_device_count={devices}: the pool "
            "has a thread for each device. Ask for at most as many devices as threads"
        )
