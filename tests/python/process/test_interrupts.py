# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while the main thread waits for the plugin: noted at once, and raised after the wait."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The signal is sent during a native call of the main thread. On a busy machine it may come too
# early or too late, so the tests try again.
_PRELUDE = """
import os, signal, sys, threading, time
import jax, jax.numpy as jnp, numpy as np, cyxla
from cyxla import _runtime
def say(text):
    os.write(2, (text + "\\n").encode())
handler = signal.getsignal(signal.SIGINT)
"""

_COMPILE = """
def unrolled(x):
    for i in range(60):
        x = jnp.sin(x @ x + i)
    return x
program = cyxla.lower(unrolled, [jax.ShapeDtypeStruct((30, 30), np.float64)])
cyxla.initialize()
compile_code = _runtime.compile_code
def watched(*arguments, **keywords):
    timer.start()
    return compile_code(*arguments, **keywords)
timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
_runtime.compile_code = watched
try:
    cyxla.compile_program(program)
    say("compiled")
except KeyboardInterrupt:
    say("interrupted")
_runtime.compile_code = compile_code
assert signal.getsignal(signal.SIGINT) is handler
small = cyxla.lower(lambda x: x * 2, [jax.ShapeDtypeStruct((3,), np.float64)])
say(str(cyxla.compile_program(small)[0].run([np.ones(3)])[0].tolist()))
"""


def _printed(code: str, *arguments: str) -> list[str]:
    """What a child process writes to stderr, in order, cyxla's notice included."""
    ended = subprocess.run(
        [sys.executable, "-c", _PRELUDE + code, *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return [line for line in ended.stderr.splitlines() if line]


def test_ctrl_c_while_compiling_is_noted_at_once() -> None:
    assert _printed(_COMPILE) == [
        "cyxla: Ctrl-C is noted; it takes effect once the plugin has compiled the program",
        "interrupted",
        "[2.0, 2.0, 2.0]",
    ]


# Each execution takes about two seconds; the trip count is measured first.
_EXECUTE = """
def long(x, trips):
    return jax.lax.fori_loop(0, trips, lambda i, x: jnp.sin(x) + 1, x)
vector = jax.ShapeDtypeStruct((16,), np.float64)
program = cyxla.lower(long, [vector, jax.ShapeDtypeStruct((), np.int64)])
executable = cyxla.compile_program(program, route=sys.argv[1])[0]
x, trips = np.ones(16), np.array(1000)
seconds = 0
while seconds < 2:
    trips *= 2 if seconds < 0.5 else 4
    start = time.perf_counter()
    executable.run([x, trips])
    seconds = time.perf_counter() - start
call = {
    "run": lambda: executable.run([x, trips]),
    "bind": executable.bind([x, trips]),
    "warm_up": lambda: executable.warm_up([x, trips], calls=1000),
}[sys.argv[2]]
threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    call()
    say("ended")
    time.sleep(20)
except KeyboardInterrupt:
    say("interrupted")
assert signal.getsignal(signal.SIGINT) is handler
trips[...] = 1
assert executable.run([x, trips])[0][0] == np.sin(1.0) + 1
"""


@pytest.mark.parametrize(
    ("route", "call"), [("pjrt", "run"), ("auto", "run"), ("auto", "bind"), ("pjrt", "warm_up")]
)
def test_ctrl_c_during_an_execution_is_noted_at_once(route: str, call: str) -> None:
    notice = "cyxla: Ctrl-C is noted; it takes effect once the execution has ended"
    expected = [[notice, "interrupted"], [notice, "ended", "interrupted"]]
    for _ in range(4):
        lines = _printed(_EXECUTE, route, call)
        if lines in expected:
            return
    pytest.fail(f"printed {lines}")


_OTHER_HANDLERS = """
program = cyxla.lower(lambda x: x * 2, [jax.ShapeDtypeStruct((3,), np.float64)])
for handler in (signal.SIG_DFL, signal.SIG_IGN, lambda number, frame: None):
    signal.signal(signal.SIGINT, handler)
    executable = cyxla.compile_program(program, route="pjrt")[0]
    executable.run([np.ones(3)])
    assert signal.getsignal(signal.SIGINT) is handler
    handlers = [line for line in open("/proc/self/status") if line.startswith("Sig")]
    executable.run([np.ones(3)])
    assert handlers == [line for line in open("/proc/self/status") if line.startswith("Sig")]
def in_thread():
    executable.run([np.ones(3)])
    cyxla.compile_program(program)
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
say("the same")
"""


def test_handlers_are_what_they_were() -> None:
    assert _printed(_OTHER_HANDLERS) == ["the same"]


_SEVERAL = """
from cyxla.compilation import batch, compile as compilation
started = threading.Semaphore(0)
def slow(request):
    started.release()
    time.sleep(1)
    return compiled(request)
compiled, batch.compile_checked = batch.compile_checked, slow
programs = [
    cyxla.lower(lambda x: x * n, [jax.ShapeDtypeStruct((3,), np.float64)]) for n in range(6)
]
def interrupt():
    for _ in range(2):
        started.acquire()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    cyxla.compile_programs(programs, max_workers=2)
except KeyboardInterrupt:
    say("interrupted")
"""


def test_ctrl_c_while_compiling_several_is_noted_at_once() -> None:
    assert _printed(_SEVERAL) == [
        "cyxla: Ctrl-C is noted; it takes effect once the compilations in flight have ended",
        "interrupted",
    ]


# Lowering calls Python functions from C++, through which an interrupt must propagate.
_LOWER = """
def unrolled(x):
    for i in range(300):
        x = jnp.sin(x @ x + i)
    return x
matrix = [jax.ShapeDtypeStruct((4, 4), np.float32)]
cyxla.lower(unrolled, matrix, platform="cpu")
start = time.perf_counter()
cyxla.lower(unrolled, matrix, platform="cpu")
seconds = time.perf_counter() - start
sys.unraisablehook = lambda _: None  # JAX's garbage collection hook may swallow one
interrupted = 0
for moment in range(60):
    timer = threading.Timer(seconds * moment / 60, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        cyxla.lower(unrolled, matrix, platform="cpu")
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        interrupted += 1
    timer.join()
say(f"interrupted {interrupted > 20}")
def stop(x):
    raise KeyboardInterrupt
for function in (stop, jax.jit(stop), jax.grad(lambda x: stop(x).sum())):
    try:
        cyxla.lower(function, matrix, platform="cpu")
    except KeyboardInterrupt:
        say("interrupted")
assert jax.jit(lambda x: x + 1)(1) == 2
small = cyxla.lower(lambda x: x * 2, [jax.ShapeDtypeStruct((3,), np.float64)])
say(str(cyxla.compile_program(small)[0].run([np.ones(3)])[0].tolist()))
"""


def test_ctrl_c_while_lowering_is_a_keyboard_interrupt() -> None:
    assert _printed(_LOWER) == ["interrupted True", *["interrupted"] * 3, "[2.0, 2.0, 2.0]"]
