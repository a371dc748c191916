# SPDX-License-Identifier: Apache-2.0
"""Executing on both routes from many threads, while executables, threads or the process end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from cpu_plugins import CPU_LIBRARIES, variables
from support.native import run_with_modules

_PRELUDE = """
import contextlib, gc, os, threading, time
import numpy as np
import jax
import cyxla
from cyxla import _runtime
import c_table, c_threads
from support.arrays import addresses, described, place, resident_bytes
from support.threads import (
    STEPS, compiled, lines, quick, run_all, run_forked, slow, start, ticking)

def end(team, **options):
    return c_threads.join(team, **options)[:3]

class InFlight:
    # A call without the GIL, on a thread of its own, of a spec that this object does not retain.
    def __init__(self, executable):
        self.inputs = [STEPS, np.arange(3.0)]
        self.output = np.zeros(3)
        self.spec = c_table.program_spec(executable)
        self.ended = []
        (self.thread,) = start(self.work)
        time.sleep(0.01)
    def work(self):
        self.ended.append(
            c_table.execute(self.spec, described(self.inputs), addresses([self.output]), True))
"""

Runner: TypeAlias = Callable[..., str]
_routes = pytest.mark.parametrize("route", ["pjrt", "direct"])
_plugins = pytest.mark.parametrize("plugin", CPU_LIBRARIES)


@pytest.fixture(name="run")
def _run(modules: Path, request: pytest.FixtureRequest) -> Runner:
    """Give a function that runs code in a process, after the prelude.

    The code knows the test's parameters by name; `plugin` is the process's plugin.
    """
    known = {"plugin": CPU_LIBRARIES[0]}
    for name in {"route", "plugin", "kind"}.intersection(request.fixturenames):
        known[name] = request.getfixturevalue(name)
    assignments = "\n".join(f"{name} = {value!r}" for name, value in known.items())
    env = variables(known["plugin"])

    def run(code: str, seconds: float = 100) -> str:
        code = f"{assignments}\n{_PRELUDE}{code}"
        return run_with_modules(modules, code, env=env, seconds=seconds)

    return run


@_plugins
def test_eight_threads_while_the_main_thread_holds_the_gil(run: Runner, plugin: str) -> None:
    # Each thread calls each of two programs 100,000 times and checks every result. The beats are
    # those of a Python thread, which runs meanwhile only if the GIL is released.
    # The pools of the older plugins keep a few megabytes, more or less.
    run(
        """
NUM_CALLS, LIMIT = (200_000, 1 << 20) if plugin.startswith("pjrt_c_api") else (10_000, 1 << 24)
beats = np.zeros(1, np.int64)
def beat():
    while beats[0] >= 0:
        beats[0] += 1
        time.sleep(0.0005)
(heart,) = start(beat)
programs = lines(8)
def run(num_calls, hold_gil):
    team = c_threads.start(programs, "kcap" * 2, num_calls, together=True)
    *done, _, _, _, beaten = c_threads.join(team, hold_gil=hold_gil, beats=beats.ctypes.data)
    assert done == [0, 0, ""], done
    return beaten

assert run(5_000, False) > 0
before = resident_bytes()
assert run(NUM_CALLS, True) == 0
grown = resident_bytes() - before
assert grown < LIMIT, grown
assert cyxla.error_info().count == 0
beats[0] = -1_000_000
heart.join()
""",
        seconds=250,
    )


def test_ended_threads_leave_nothing_behind(run: Runner) -> None:
    # 10,000 threads, eight at a time: a thread takes over what an ended one left.
    run("""
programs = lines(64)
def spawn(num_teams):
    for _ in range(num_teams):
        team = c_threads.start(programs, "kcap" * 2, 4, together=True)
        assert end(team, hold_gil=True) == (0, 0, "")
spawn(250)
before = resident_bytes()
spawn(1000)
grown = resident_bytes() - before
assert grown < 1 << 20, grown
""")


def test_ended_python_threads_leave_no_memory_behind(run: Runner) -> None:
    run("""
f = compiled(lambda *a: [v * 2 for v in a], *[((500,), "f8")] * 30, route="direct")
inputs = [np.full(500, k) for k in range(30)]
def work():
    assert all((out == 2 * k).all() for k, out in enumerate(f.run(inputs)))
def spawn(count):
    for _ in range(count):
        run_all(work, work, work, work)
spawn(20)
grown = []
for _ in range(3):
    before = resident_bytes()
    spawn(50)
    grown.append(resident_bytes() - before)
assert min(grown) < 1 << 20, grown
""")


def test_an_executable_is_dropped_while_threads_are_in_it(run: Runner) -> None:
    # The threads hold the programs by retain(), and the last one to end destroys them.
    run("""
for size in (4, 256, 4096):
    programs = lines(size)
    teams = [c_threads.start(programs, "kcap", 2_000) for _ in range(2)]
    del programs
    gc.collect()
    while len(teams) > 0:
        compiled(lambda x: x + size, ((3,), "f4"), route="pjrt").run([np.zeros(3)])
        assert end(teams.pop()) == (0, 0, "")
""")


@_routes
def test_an_executable_is_dropped_during_a_call_that_does_not_hold_it(
    run: Runner, route: str
) -> None:
    # The spec is then invalid, but the call in flight succeeds.
    run("""
wanted = slow("pjrt").run([STEPS, np.arange(3.0)])[0]
during = []
for _ in range(20):  # a busy machine may let the call end first
    executable = slow(route)
    call = InFlight(executable)
    del executable
    gc.collect()
    during.append(not call.ended)
    slow(route)  # its code may get the address of what was freed
    call.thread.join()
    assert call.ended == [(0, "")], call.ended
    assert call.output.tobytes() == wanted.tobytes()
    if any(during):
        break
assert any(during)
""")


@_routes
def test_python_threads_drop_their_executables(run: Runner, route: str) -> None:
    run("""
x = np.arange(16.0)
wanted = np.sin(x) * 2
executables = [quick(route) for _ in range(8)]
ready = threading.Barrier(8)
def work(i):
    own, shared = executables[i], executables[i // 2 * 2]
    bound = own.bind([x])
    ready.wait(60)
    executables[i] = own = None
    for _ in range(2000):
        for doubled, total in (bound(), shared.run([x])):
            assert total == 120 and np.allclose(doubled, wanted)
run_all(*(lambda i=i: work(i) for i in range(8)))
assert executables == [None] * 8
""")


@_plugins
@_routes
def test_python_threads_share_an_executable(run: Runner, route: str, plugin: str) -> None:
    # Half of the threads have arrays that are aligned.
    run("""
f, reference, NUM_INPUTS = quick(route), quick("pjrt"), 16
NUM_CALLS = 20_000 if route == "direct" else 3_000
inputs = [np.linspace(-k, k + 1, 16) for k in range(8 * NUM_INPUTS)]
wanted = [tuple(a.tobytes() for a in reference.run([x])) for x in inputs]

def work(i):
    mine = range(i * NUM_INPUTS, (i + 1) * NUM_INPUTS)
    x, first = (place(np.zeros(16), 8 * (i % 2)) for _ in range(2))
    out = [first, np.empty(())]
    bound = f.bind([x])
    for call in range(NUM_CALLS):
        k = mine[call % NUM_INPUTS]
        x[:] = inputs[k]
        way = (call + i) % 3
        results = bound() if way == 0 else f.run([x]) if way == 1 else f.run([x], out=out)
        assert (results[0].tobytes(), results[1].tobytes()) == wanted[k], (i, call)

run_all(*(lambda i=i: work(i) for i in range(8)))
assert cyxla.error_info().count == 0
""")


@_routes
def test_python_threads_go_on_during_an_execution(run: Runner, route: str) -> None:
    # A trial with a small trip count takes less than a microsecond; a call may take long.
    run("""
f, x = slow(route), np.arange(3.0)
with ticking() as ticks:
    for call in (lambda: f.run([STEPS, x]), lambda: f.run([STEPS, x], out=[x * 0]),
                 f.bind([STEPS, x])):
        for _ in range(5):  # a busy machine can stop the ticking too
            begin = time.perf_counter()
            call()
            end = time.perf_counter()
            assert end - begin > 0.02, end - begin
            gaps = np.diff([begin, *(t for t in ticks if begin < t < end), end])
            if went_on := len(gaps) > 3 and gaps.max() < 0.5 * (end - begin):
                break
        assert went_on, (end - begin, gaps)
""")


@_routes
def test_a_prepared_call_that_runs_is_refused_to_a_second_thread(run: Runner, route: str) -> None:
    run("""
f, y = slow(route), np.zeros(3)
inputs = [np.array(300_000, "i4"), np.arange(3.0)]
call = c_table.prepare(f, described(inputs), addresses([y]), True)
ready, ended = threading.Barrier(2), []
def work():
    ready.wait()
    ended.append(c_table.call(call, repeat=20))
run_all(work, work)
assert 0 < sum(failures for failures, _ in ended) < 40, ended
for failures, message in ended:
    assert failures == 0 or "already running on another thread" in message, ended
assert c_table.call(call) == (0, "")
np.testing.assert_array_equal(y, f.run(inputs)[0])
c_table.discard(call)
""")


@_plugins
@_routes
def test_shutting_down_waits_for_calls_and_refuses_later_ones(
    run: Runner, route: str, plugin: str
) -> None:
    run("""
programs, loop = lines(64, route), slow(route)
executable = programs[0][0]
wanted = slow("pjrt").run([STEPS, np.arange(3.0)])[0]
x, y = np.arange(64, dtype="f4"), np.zeros(64, "f4")
inputs, outputs = described([x]), addresses([y])
spec = c_table.program_spec(executable)
c_table.retain(spec)
description = c_table.describe(spec)
prepared = c_table.prepare(spec, inputs, outputs, True)
bound = executable.bind([x])
assert c_table.call(prepared) == (0, "")

team = c_threads.start(programs, "kcap" * 2, 10**9)
time.sleep(0.1)
in_flight = InFlight(loop)
was_running = not in_flight.ended
_runtime.shutdown()
assert was_running and in_flight.ended == [(0, "")], (was_running, in_flight.ended)
assert in_flight.output.tobytes() == wanted.tobytes()
in_flight.thread.join()
failures, mismatches, message = end(team)
assert (failures, mismatches) == (8, 0) and "the runtime is shut down" in message, message

for again in range(2):
    y[:] = 7
    for failures, message in (
        c_table.execute(spec, inputs, outputs, True),
        c_table.execute(spec, inputs, outputs, False, on_thread=True),
        c_table.call(prepared),
    ):
        assert failures == 1 and "the runtime is shut down" in message, message
    assert c_table.prepare(spec, inputs, outputs, True) == 0
    assert (y == 7).all()
    for call in (bound, lambda: executable.run([x]), lambda: executable.bind([x])):
        try:
            call()
        except cyxla.ShutdownError as error:
            assert "the runtime is shut down" in str(error)
        else:
            raise AssertionError("executed after shutdown")
    _runtime.shutdown()
assert executable.route_reason == "" if route == "direct" else True
assert c_table.describe(spec) == description
del executable, programs, bound
gc.collect()
assert c_table.describe(spec) == description
c_table.discard(prepared)
c_table.release(spec)
""")


@_routes
def test_a_child_forked_while_threads_call_fails_at_once(run: Runner, route: str) -> None:
    # The child inherits locks that the parent's threads hold, and that are never released there.
    run("""
import warnings
warnings.simplefilter("ignore")
executable, x = quick(route), np.arange(16.0)
bound = executable.bind([x])
right, wrong = described([x]), described([x[1:]])
stop = False
def fail():
    while not stop:
        c_table.execute(executable, wrong, [0, 0], True, repeat=10_000)
def work():
    own = executable.bind([x])
    while not stop:
        c_table.execute(executable, right, [0, 0], True, repeat=1_000)
        own()
def refused():
    failures, message = c_table.execute(executable, right, [0, 0], True)
    count = failures == 1 and "forked" in message
    for call in (bound, lambda: executable.run([x]), lambda: executable.bind([x])()):
        try:
            call()
        except cyxla.ForkError as error:
            count += "forked" in str(error)
    return count
threads = start(fail, fail, work, work)
try:
    for _ in range(60):
        assert run_forked(refused) == 4
finally:
    stop = True
    for thread in threads: thread.join()
assert bound()[1] == executable.run([x])[1] == 120
""")


@_plugins
@_routes
@pytest.mark.parametrize("kind", ["native", "Python", "long"])
def test_the_process_ends_while_threads_execute(
    run: Runner, kind: str, route: str, plugin: str
) -> None:
    for size in (8, 100_000) if route == "pjrt" and kind != "long" else (8,):
        printed = run(
            f"size = {size}"
            """
programs, loop = lines(size, route), slow(route)
x, long_inputs, y = np.zeros(size, "f4"), [STEPS, np.arange(3.0)], np.zeros(3)
bound = programs[0][0].bind([x])
def repeat(call):
    # Daemon threads cannot write a traceback to stderr at the end of the process.
    with contextlib.suppress(cyxla.ShutdownError):
        while True:
            call()
def long():
    done = c_table.execute(loop, described(long_inputs), addresses([y]), True)
    if done != (0, ""):
        raise cyxla.ShutdownError(done[1])
calls = {
    "native": [], "Python": [lambda: programs[0][0].run([x]), bound], "long": [long, long]}
if kind == "native":
    c_threads.start(programs, "kcap", 10**9)
for call in calls[kind]:
    threading.Thread(target=repeat, args=(call,), daemon=True).start()
time.sleep(0.2)
print("the end")
"""
        )
        assert printed == "the end\n"
