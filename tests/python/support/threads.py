# SPDX-License-Identifier: Apache-2.0
"""Threads, forked children, and programs to call from them."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import cyxla
from support.arrays import Array

# The trip count of slow(): the loop takes about a hundred milliseconds.
STEPS = np.array(3_000_000, "i4")


def start(*works: Callable[[], object]) -> list[threading.Thread]:
    """Start a thread for each function."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    return threads


def run_all(*works: Callable[[], object]) -> None:
    """Run each function on a thread of its own, and raise the first exception of one."""
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    for thread in start(*(functools.partial(run, work) for work in works)):
        thread.join(240)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


@contextmanager
def ticking() -> Iterator[list[float]]:
    """Give a list to which a Python thread appends the time about every millisecond."""
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    (thread,) = start(tick)
    try:
        yield ticks
    finally:
        stop.set()
        thread.join()


def run_forked(work: Callable[[], int], seconds: float = 20) -> int:
    """Return the exit status that `work` returned in a forked child; kill a child that hangs."""
    child = os.fork()
    if child == 0:
        os._exit(work())
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


def compiled(function: Any, *types: tuple[tuple[int, ...], str], route: str) -> cyxla.Executable:
    """Compile a function of arrays of these shapes and dtypes for a route, which it must get."""
    specs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]
    executable, _ = cyxla.compile_program(cyxla.lower(function, specs), route=route)
    assert executable.route == route, executable.route_reason
    return executable


def quick(route: str) -> cyxla.Executable:
    """Compile x -> (2 sin(x), sum of x) on 16 doubles."""
    return compiled(lambda x: (jnp.sin(x) * 2, x.sum()), ((16,), "f8"), route=route)


def slow(route: str) -> cyxla.Executable:
    """Compile a loop on three doubles, whose first input is the trip count."""
    return compiled(
        lambda n, x: jax.lax.fori_loop(0, n, lambda i, a: jnp.sin(a) + a, x),
        *(((), "i4"), ((3,), "f8")),
        route=route,
    )


def lines(size: int, route: str = "pjrt") -> tuple[tuple[cyxla.Executable, Any, Any], ...]:
    """Compile two programs x -> a x + b on floats, with sets of inputs and outputs for c_threads.

    The numbers are small and whole, so that every result is exact.
    """
    inputs: list[Array] = [(np.arange(size) + 131.0 * k).astype("f4") % 1000 for k in range(7)]
    return tuple(
        (
            compiled(lambda x, a=a, b=b: a * x + b, ((size,), "f4"), route=route),
            tuple(x.tobytes() for x in inputs),
            tuple((a * x + b).tobytes() for x in inputs),
        )
        for a, b in ((2, 1), (-3, 5))
    )
