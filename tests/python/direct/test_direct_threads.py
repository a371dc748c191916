# SPDX-License-Identifier: Apache-2.0
"""Direct calls from many threads, and what may end meanwhile; each in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from child_process import run_code
from cpu_plugins import CPU_LIBRARIES, variables

_PRELUDE = """
import gc, os, sys, threading, time
import numpy as np
import jax, jax.numpy as jnp
from jax import lax
import cyxla
from cyxla import _runtime
from direct_calls import NativeProgram

S = jax.ShapeDtypeStruct

def build(function, *types, route="direct"):
    program = cyxla.lower(function, [S(shape, dtype) for shape, dtype in types], platform="cpu")
    executable, _ = cyxla.compile_program(program, route=route)
    assert executable.route == route
    return executable

def quick(route="direct"):
    return build(lambda x: (jnp.sin(x) * 2, x.sum()), ((16,), "f8"), route=route)

def slow(route="direct"):
    # As many steps as its first input says; a million take tens of milliseconds.
    return build(
        lambda n, x: lax.fori_loop(0, n, lambda i, a: jnp.sin(a) + a, x),
        ((), "i4"), ((3,), "f8"), route=route,
    )

N = np.array(3_000_000, "i4")

def start(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads: thread.start()
    return threads

class InFlight:
    # A call without the GIL, on a thread of its own, of a spec that nothing keeps.
    def __init__(self, executable):
        self.inputs = [N, np.arange(3.0)]
        self.output = np.zeros(3)
        self.native = NativeProgram(executable)
        self.ended = []
        (self.thread,) = start(self.work)
        time.sleep(0.01)
    def work(self):
        try:
            self.native.execute(
                [array.ctypes.data for array in self.inputs], [self.output.ctypes.data])
            self.ended.append("")
        except cyxla.Error as error:
            self.ended.append(str(error))
"""


def run(code: str, library: str = CPU_LIBRARIES[0], seconds: float = 100) -> str:
    path = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**variables(library), "PYTHONPATH": os.pathsep.join(filter(None, path))}
    return run_code(_PRELUDE + code, env=environment, seconds=seconds)


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_four_threads_share_an_executable(library: str) -> None:
    # Of the threads two bind arrays, one takes fresh outputs and one gives its own, misaligned.
    run(
        """
f, reference = quick(), quick("pjrt")
NUM_CALLS, NUM_INPUTS = 20_000, 16
inputs = [np.linspace(-k, k + 1, 16) for k in range(4 * NUM_INPUTS)]
wanted = [tuple(a.tobytes() for a in reference.run([x])) for x in inputs]
calls, bad = [0] * 4, []

def work(i):
    mine = range(i * NUM_INPUTS, (i + 1) * NUM_INPUTS)
    x = cyxla.aligned_empty(16) if i < 2 else np.empty(17)[1:]
    out = [np.empty(17)[1:], np.empty(())]
    bound = f.bind([x])
    for call in range(NUM_CALLS):
        k = mine[call % NUM_INPUTS]
        x[:] = inputs[k]
        results = bound() if i < 2 else f.run([x]) if i == 2 else f.run([x], out=out)
        if (results[0].tobytes(), results[1].tobytes()) != wanted[k]:
            bad.append((i, call))
        calls[i] += 1

for thread in start(*(lambda i=i: work(i) for i in range(4))): thread.join()
assert not bad, (len(bad), bad[:5])
assert calls == [NUM_CALLS] * 4, calls
assert cyxla.error_info().count == 0
""",
        library,
    )


def test_a_loop_of_unknown_length_runs_without_the_gil() -> None:
    # Tried with small numbers it takes less than a microsecond, and yet it may take long.
    run("""
f = slow()
x = np.arange(3.0)
ticks, stop = [], threading.Event()
def tick():
    while not stop.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
(heart,) = start(tick)
for call in (lambda: f.run([N, x]), f.bind([N, x])):
    for _ in range(5):  # a busy machine can stop the ticking too
        begin = time.perf_counter()
        call()
        end = time.perf_counter()
        during = [t for t in ticks if begin < t < end]
        assert end - begin > 0.02, end - begin
        if len(during) > 3:
            break
    else:
        stop.set()
        raise AssertionError((len(during), end - begin))
stop.set()
heart.join()
""")


def test_an_executable_is_dropped_during_a_call_that_does_not_hold_it() -> None:
    run("""
wanted = slow("pjrt").run([N, np.arange(3.0)])[0]
during = []
for _ in range(3):
    executable = slow()
    call = InFlight(executable)
    del executable
    gc.collect()
    during.append(not call.ended)
    slow()  # its code may take the place of what was given back
    call.thread.join()
    assert call.ended == [""], call.ended
    assert call.output.tobytes() == wanted.tobytes()
assert any(during)
""")


def test_python_threads_drop_their_executables() -> None:
    run("""
x = np.arange(16.0)
wanted = np.sin(x) * 2
executables = [quick() for _ in range(8)]
bad = []
def work(i):
    own, shared = executables[i], executables[i // 2 * 2]
    bound = own.bind([x])
    executables[i] = own = None
    for call in range(2000):
        for doubled, total in (bound(), shared.run([x])):
            if total != 120 or not np.allclose(doubled, wanted):
                bad.append((i, call))
for thread in start(*(lambda i=i: work(i) for i in range(8))): thread.join()
assert not bad, bad[:5]
assert executables == [None] * 8
""")


def test_threads_that_come_and_go_leave_no_memory_behind() -> None:
    run("""
from support.arrays import resident_bytes
f = build(lambda *a: [v * 2 for v in a], *[((500,), "f8")] * 30)
inputs = [np.full(500, k) for k in range(30)]
bad = []
def work():
    if any((out != 2 * k).any() for k, out in enumerate(f.run(inputs))):
        bad.append(1)
def spawn(count):
    for _ in range(count):
        for thread in start(work, work, work, work): thread.join()
spawn(20)
grown = []
for _ in range(3):
    before = resident_bytes()
    spawn(50)
    grown.append(resident_bytes() - before)
assert min(grown) < 1 << 20, grown
assert not bad
""")


def test_a_forked_child_gets_an_error() -> None:
    run("""
import warnings
warnings.simplefilter("ignore")
f, x = quick(), np.arange(16.0)
bound = f.bind([x])
bound()
for _ in range(3):
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (bound, lambda: f.run([x]), lambda: f.bind([x])()):
            try:
                call()
            except cyxla.ForkError as error:
                refused += "forked" in str(error)
        os._exit(refused)
    deadline = time.monotonic() + 20
    ended = 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.002)
    if not ended:
        os.kill(child, 9)
    assert ended and os.waitstatus_to_exitcode(status) == 3, (ended, status)
bound()
assert f.run([x])[1] == 120
""")


def test_a_child_forked_while_threads_call_gets_an_error() -> None:
    run("""
import warnings
warnings.simplefilter("ignore")
f, x = quick(), np.arange(16.0)
stop = False
def work():
    bound = f.bind([x])
    while not stop:
        bound()
threads = start(work, work)
for _ in range(30):
    child = os.fork()
    if child == 0:
        try:
            f.run([x])
        except cyxla.ForkError:
            os._exit(7)
        os._exit(0)
    deadline = time.monotonic() + 20
    ended = 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.001)
    if not ended:
        os.kill(child, 9)
        break
    if os.waitstatus_to_exitcode(status) != 7:
        break
stop = True
for thread in threads: thread.join()
assert ended and os.waitstatus_to_exitcode(status) == 7, (ended, status)
""")


def test_shutting_down_waits_for_a_call_and_refuses_later_ones() -> None:
    run("""
f, loop = quick(), slow()
wanted = slow("pjrt").run([N, np.arange(3.0)])[0]
x = np.arange(16.0)
bound = f.bind([x])
call = InFlight(loop)
was_running = not call.ended
_runtime.shutdown()
assert was_running and call.ended == [""], (was_running, call.ended)
call.thread.join()
assert call.output.tobytes() == wanted.tobytes()
again = InFlight(loop)
again.thread.join()
assert "the runtime is shut down" in again.ended[0], again.ended
assert (again.output == 0).all()
for later in (bound, lambda: f.run([x]), lambda: f.bind([x])):
    try:
        later()
    except cyxla.ShutdownError as error:
        assert "the runtime is shut down" in str(error)
    else:
        raise AssertionError("executed after shutdown")
_runtime.shutdown()
assert (f.route, f.route_reason) == ("direct", "")
""")


@pytest.mark.parametrize("library", CPU_LIBRARIES)
@pytest.mark.parametrize("kind", ["short calls", "a long call"])
def test_the_process_ends_while_threads_are_inside(kind: str, library: str) -> None:
    printed = run(
        f"""
import contextlib
f, loop, x = quick(), slow(), np.arange(16.0)
native, out = NativeProgram(f), np.zeros(17)
long_native, long_inputs, long_out = NativeProgram(loop), [N, np.arange(3.0)], np.zeros(3)
def short():
    with contextlib.suppress(cyxla.Error):
        while True:
            native.execute([x.ctypes.data], [out.ctypes.data, out[16:].ctypes.data])
def run():
    bound = f.bind([x])
    with contextlib.suppress(cyxla.Error):
        while True:
            bound()
def long():
    with contextlib.suppress(cyxla.Error):
        while True:
            long_native.execute([a.ctypes.data for a in long_inputs], [long_out.ctypes.data])
for work in (short, run) if {kind!r} == "short calls" else (long, long):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
print("the end")
""",
        library,
    )
    assert printed == "the end\n"
