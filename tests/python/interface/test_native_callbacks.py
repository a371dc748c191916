# SPDX-License-Identifier: Apache-2.0
"""Programs that call Python, executed from C: with the GIL or without, on any thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpu_plugins import CPU_LIBRARIES, variables
from support.native import run_with_modules

_CODE = """
import gc, logging, threading, weakref
import numpy as np
import jax, jax.numpy as jnp
import cyxla, c_table, c_threads
from support.arrays import addresses, described

logging.disable(logging.CRITICAL)  # JAX logs each failure
vector, matrix = jax.ShapeDtypeStruct((2,), "f4"), jax.ShapeDtypeStruct((200, 200), "f4")
threads_seen = set()

def double(a):
    threads_seen.add(threading.get_ident())
    if a[0] < 0:
        raise ValueError("negative")
    return 2 * np.asarray(a)

def cheap(v, m):
    return jax.pure_callback(double, vector, v)

def heavy(v, m):  # the plugin may call back on a thread of its own
    m = jax.lax.fori_loop(0, 4, lambda _, a: jnp.tanh(a @ a), m)
    return jax.pure_callback(double, vector, v + 0 * m[0, :2])

x, m = np.array([1, 2], "f4"), np.eye(200, dtype="f4")
output = np.zeros(2, "f4")
wanted = (np.array([2, 4], "f4").tobytes(),)
stop = threading.Event()

def busy():  # competes for the GIL
    while not stop.is_set():
        sum(range(200))

def needs_python(executable):
    return c_table.describe(c_table.program_spec(executable))["flags"] == 1

def execute(executable, repeat, num_threads, hold_gil):
    # Without threads it executes on this one; threads have arrays of their own.
    if num_threads == 0:
        output[:] = 0
        done = c_table.execute(
            executable, described([x, m]), addresses([output]), True, repeat, hold_gil=hold_gil)
        assert done[0] > 0 or output.tobytes() == wanted[0]
        return done
    program = (executable, (x.tobytes() + m.tobytes(),), wanted)
    team = c_threads.start((program,), "k" * num_threads, repeat, max_failures=repeat)
    failures, mismatches, message, *_ = c_threads.join(team)
    assert mismatches == 0
    return failures, message

assert not needs_python(cyxla.compile_program(cyxla.lower(jnp.sin, [vector]))[0])
for function in (cheap, heavy):
    executable, _ = cyxla.compile_program(cyxla.lower(function, [vector, matrix]))
    assert needs_python(executable)
    for with_busy in (False, True):
        stop.clear()
        other = threading.Thread(target=busy)
        if with_busy:
            other.start()
        for threads, hold_gil in ((0, False), (0, True), (1, False), (4, False)):
            done = execute(executable, 3, threads, hold_gil)
            assert done == (0, ""), done
            x[0] = -1
            failures, message = execute(executable, 1, threads, hold_gil)
            x[0] = 1
            assert failures == max(threads, 1)
            assert "ValueError in the host callback pure_callback at" in message, message
            assert message.endswith("negative"), message
        stop.set()
        if with_busy:
            other.join()
assert len(threads_seen) > 2  # Python knows C threads while they call it
assert cyxla.error_info().count == 2 * 2 * (1 + 1 + 1 + 4)

# Exceptions of native callers' callbacks are freed at once, even while Python waits.
class Kept(Exception):
    pass

raised = weakref.WeakSet()

def fail(a):
    if a[0] == 0:
        inside.set()
        assert go_on.wait(60)
    error = Kept("failed")
    raised.add(error)
    raise error

def fail_cheaply(v, m):
    return jax.pure_callback(fail, vector, v)

def fail_heavily(v, m):
    m = jax.lax.fori_loop(0, 4, lambda _, a: jnp.tanh(a @ a), m)
    return jax.pure_callback(fail, vector, v + 0 * m[0, :2])

def cause_of_run(executable, first):
    try:
        executable.run([np.full(2, first, "f4"), m])
    except cyxla.ExecutionError as error:
        return type(error.__cause__)

def wait():
    causes.append(cause_of_run(cheap, 0))

inside, go_on, causes = threading.Event(), threading.Event(), []
cheap, heavy = (
    cyxla.compile_program(cyxla.lower(function, [vector, matrix]))[0]
    for function in (fail_cheaply, fail_heavily)
)
waiting = threading.Thread(target=wait)
waiting.start()
assert inside.wait(60)
for executable in (cheap, heavy):
    failures, message = execute(executable, 50, 2, False)
    assert failures == 100
    assert message.endswith("failed") and message.isprintable() and "#" not in message, message
    gc.collect()
    assert len(raised) == 0, len(raised)
    assert cause_of_run(executable, 1) is Kept
go_on.set()
waiting.join()
assert causes == [Kept], causes
"""


@pytest.mark.parametrize("plugin", CPU_LIBRARIES)
def test_callbacks_from_c(modules: Path, plugin: str) -> None:
    run_with_modules(modules, _CODE, env=variables(plugin))
