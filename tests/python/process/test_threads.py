# SPDX-License-Identifier: Apache-2.0
"""Executing from many threads, Python's and others, and what may end meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.native import PLUGINS, build_modules, plugin_variables, run_with_modules

_PRELUDE = """
import gc, sys, threading, time
import numpy as np
import jax, jax.numpy as jnp
import cyxla
from cyxla import _runtime
import c_table, c_threads
from support.arrays import resident_bytes

def build(function, shape, dtype="f4"):
    program = cyxla.lower(function, [jax.ShapeDtypeStruct(shape, dtype)])
    return cyxla.compile_program(program)[0]

def lines(size):
    # What c_threads takes: programs x -> scale * x + shift, with the two numbers.
    return [(build(lambda x, a=a, b=b: a * x + b, (size,)), a, b) for a, b in ((2, 1), (-3, 5))]

def slow():
    return build(lambda x: jax.lax.fori_loop(0, 400, lambda i, a: jnp.tanh(a @ a), x), (200, 200))
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled modules."""
    return build_modules(tmp_path_factory)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_eight_threads_while_the_main_thread_holds_the_gil(modules: Path, plugin: str) -> None:
    # Each thread calls each of two programs 100,000 times and checks every result. The beats are
    # those of a Python thread, which cannot run meanwhile; with the GIL released it does.
    # The pools of the older plugins keep a few megabytes, more or less.
    num_calls, limit = (200_000, 1 << 20) if plugin == PLUGINS[0] else (10_000, 1 << 24)
    run_with_modules(
        modules,
        f"NUM_CALLS, LIMIT = {num_calls}, {limit}\n"
        + _PRELUDE
        + """
beats = np.zeros(1, np.int64)
def beat():
    while beats[0] >= 0:
        beats[0] += 1
        time.sleep(0.0005)
heart = threading.Thread(target=beat, daemon=True)
heart.start()
address = beats.ctypes.data
programs = lines(8)

failures, mismatches, message, beaten = c_threads.run(programs, 8, 5_000, False, address)
assert (failures, mismatches, message) == (0, 0, "") and beaten > 0, (message, beaten)

before = resident_bytes()
done = c_threads.run(programs, 8, NUM_CALLS, True, address)
assert done == (0, 0, "", 0), done
grown = resident_bytes() - before
assert grown < LIMIT, grown
assert cyxla.error_info().count == 0
beats[0] = -1_000_000
heart.join()
""",
        env=plugin_variables(plugin),
        seconds=250,
    )


def test_a_great_number_of_threads_in_turn_leaves_nothing_behind(modules: Path) -> None:
    # 10,000 threads, eight at a time: a thread takes over what an ended one left.
    run_with_modules(
        modules,
        _PRELUDE
        + """
programs = lines(64)
def spawn(num_teams):
    for _ in range(num_teams):
        assert c_threads.run(programs, 8, 4) == (0, 0, "", 0)
spawn(250)
before = resident_bytes()
spawn(1000)
grown = resident_bytes() - before
assert grown < 1 << 20, grown
""",
    )


def test_an_executable_is_dropped_while_threads_are_in_it(modules: Path) -> None:
    # The threads hold the programs by retain(), and the last one to end destroys them.
    run_with_modules(
        modules,
        _PRELUDE
        + """
for size in (4, 256, 4096):
    programs = lines(size)
    teams = [c_threads.start(programs, 4, 2_000) for _ in range(2)]
    del programs
    gc.collect()
    while len(teams) > 0:
        build(lambda x: x + size, (3,)).run([np.zeros(3)])
        assert c_threads.join(teams.pop()) == (0, 0, "")
""",
    )


def test_an_executable_is_dropped_during_a_call_that_does_not_hold_it(modules: Path) -> None:
    # The spec may not be used again, but the call that is under way ends well.
    run_with_modules(
        modules,
        _PRELUDE
        + """
x, y = np.eye(200, dtype="f4"), np.zeros((200, 200), "f4")
expected = slow().run([x])[0]
during = []
for _ in range(20):  # a busy machine may let the call end first
    executable = slow()
    spec = c_table.program_spec(executable)
    done = []
    def work():
        done.append(c_table.execute(spec, [(x.ctypes.data, 11, x.size)], [y.ctypes.data], True))
    thread = threading.Thread(target=work)
    y[:] = 0
    thread.start()
    time.sleep(0.01)
    del executable
    gc.collect()
    during.append(not done)
    thread.join()
    assert done == [(0, "")], done
    np.testing.assert_array_equal(y, expected)
    if any(during):
        break
assert any(during)
""",
    )


def test_python_threads_drop_their_executables(modules: Path) -> None:
    run_with_modules(
        modules,
        _PRELUDE
        + """
f = [build(lambda x, k=k: x @ x * k, (200, 200)) for k in range(4)]
x = np.ones((200, 200), "f4")
bad = []
def work(i):
    for _ in range(100):
        if f[i].run([x])[0][0, 0] != 200 * i:
            bad.append(i)
    f[i] = None
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not bad and f == [None] * 4
""",
    )


def test_python_threads_share_an_executable(modules: Path) -> None:
    run_with_modules(
        modules,
        _PRELUDE
        + """
f = build(lambda x: (x * 2, x.sum()), (64,), "f8")
bad = []
def work(i):
    x, out = np.zeros(64), (np.zeros(64), np.zeros(()))
    bound = f.bind([x])
    for call in range(3000):
        x[:] = 1000 * i + call
        doubled, total = (f.run([x]), f.run([x], out=out), bound())[call % 3]
        if (doubled != 2 * x).any() or total != 64 * (1000 * i + call):
            bad.append((i, call))
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not bad, bad[:5]
""",
    )


@pytest.mark.parametrize("call", ["f.run([x])", "f.run([x], out=[x * 0])", "f.bind([x])()"])
def test_python_threads_go_on_during_an_execution(modules: Path, call: str) -> None:
    run_with_modules(
        modules,
        _PRELUDE
        + f"""
f, x = slow(), np.eye(200, dtype="f4")
f.run([x])
ticks, stop = [], threading.Event()
def tick():
    while not stop.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0.002)
heart = threading.Thread(target=tick)
heart.start()
for _ in range(5):  # a busy machine can stop the ticking too
    start = time.perf_counter()
    {call}
    end = time.perf_counter()
    gaps = np.diff([start, *(t for t in ticks if start <= t <= end), end])
    went_on = len(gaps) > 3 and gaps.max() < 0.5 * (end - start)
    if went_on:
        break
stop.set()
heart.join()
assert went_on, (end - start, gaps)
""",
    )


def test_a_prepared_call_that_runs_is_refused_to_a_second_thread(modules: Path) -> None:
    run_with_modules(
        modules,
        _PRELUDE
        + """
f, x = slow(), np.eye(200, dtype="f4")
y = np.zeros_like(x)
call = c_table.prepare(f, [(x.ctypes.data, 11, x.size)], [y.ctypes.data], True)
ready, ended = threading.Barrier(2), []
def work():
    ready.wait()
    ended.append(c_table.call(call, repeat=20))
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert 0 < sum(failures for failures, _ in ended) < 40, ended
for failures, message in ended:
    assert failures == 0 or "already running on another thread" in message, ended
assert c_table.call(call) == (0, "")
np.testing.assert_array_equal(y, f.run([x])[0])
c_table.discard(call)
""",
    )


@pytest.mark.parametrize("plugin", PLUGINS)
def test_shutting_down_waits_for_calls_and_refuses_later_ones(modules: Path, plugin: str) -> None:
    run_with_modules(
        modules,
        _PRELUDE
        + """
programs = lines(64)
executable = programs[0][0]
x, y = np.arange(64, dtype="f4"), np.zeros(64, "f4")
inputs = [(x.ctypes.data, 11, 64)]
spec = c_table.program_spec(executable)
c_table.retain(spec)
described = c_table.describe(spec)
prepared = c_table.prepare(spec, inputs, [y.ctypes.data], True)
bound = executable.bind([x])
assert c_table.call(prepared) == (0, "")

team = c_threads.start(programs, 8, 10**9)
time.sleep(0.1)
_runtime.shutdown()
failures, mismatches, message = c_threads.join(team)
assert (failures, mismatches) == (8, 0) and "the runtime is shut down" in message, message

for again in range(2):
    y[:] = 7
    for failures, message in (
        c_table.execute(spec, inputs, [y.ctypes.data], True),
        c_table.execute(spec, inputs, [y.ctypes.data], False, on_thread=True),
        c_table.call(prepared),
    ):
        assert failures == 1 and "the runtime is shut down" in message, message
    assert c_table.prepare(spec, inputs, [y.ctypes.data], True) == 0
    assert (y == 7).all()
    for call in (bound, lambda: executable.run([x]), lambda: executable.bind([x])):
        try:
            call()
        except cyxla.ShutdownError as error:
            assert "the runtime is shut down" in str(error)
        else:
            raise AssertionError("executed after shutdown")
    _runtime.shutdown()
assert c_table.describe(spec) == described
del executable, programs, bound
gc.collect()
assert c_table.describe(spec) == described
c_table.discard(prepared)
c_table.release(spec)
""",
        env=plugin_variables(plugin),
    )


def test_a_forked_child_fails_at_once_whatever_threads_were_doing(modules: Path) -> None:
    # In the child nobody would give back what a thread of the parent held.
    run_with_modules(
        modules,
        _PRELUDE
        + """
import os, signal, warnings
warnings.simplefilter("ignore")
programs = lines(64)
executable = programs[0][0]
x = np.ones(64, "f4")
right, wrong = [(x.ctypes.data, 11, 64)], [(x.ctypes.data, 11, 63)]
stop = False
def fail():
    while not stop:
        c_table.execute(executable, wrong, [0], True, repeat=10_000)
def work():
    while not stop:
        c_table.execute(executable, right, [0], True, repeat=1_000)
threads = [threading.Thread(target=target) for target in (fail, fail, work, work)]
for thread in threads: thread.start()
for _ in range(60):
    child = os.fork()
    if child == 0:
        failures, message = c_table.execute(executable, right, [0], True)
        os._exit(0 if failures == 1 and "forked" in message else 3)
    deadline = time.monotonic() + 20
    ended, status = 0, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.001)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not ended or status != 0:
        break
stop = True
for thread in threads: thread.join()
assert ended and status == 0, "the child hung" if not ended else status
""",
    )


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("kind", ["native", "Python"])
def test_the_process_ends_while_threads_execute(modules: Path, kind: str, plugin: str) -> None:
    start = {
        "native": "c_threads.start(programs, 4, 10**9)",
        "Python": "threading.Thread(target=run, daemon=True).start()",
    }
    for size in (8, 100_000):
        run_with_modules(
            modules,
            _PRELUDE
            + f"""
import contextlib
programs = lines({size})
def run():
    # Its traceback would need stderr, which CPython does not give daemon threads at the very end.
    with contextlib.suppress(cyxla.ShutdownError):
        while True:
            programs[0][0].run([np.zeros({size}, "f4")])
{start[kind]}
time.sleep(0.2)
""",
            env=plugin_variables(plugin),
        )
