# SPDX-License-Identifier: Apache-2.0
"""The process ends while threads execute, without a hang or a crash.

CYXLA_REPETITIONS is the number of repetitions, 3 by default; `make life` runs a hundred.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import cyxla
from child_process import run_process
from support.cycles import heat

_REPETITIONS = int(os.environ.get("CYXLA_REPETITIONS", "3"))
_SECONDS = 60  # more is a hang; the machine may be busy

# The child needs JAX only for callbacks: the other programs are lowered and saved here, once.
_START = """
import contextlib, sys, threading, time
sys.path.insert(0, {modules!r})
import numpy as np, cyxla, c_threads

cyxla.initialize(jax_targets=False)

def saved(name):
    program = cyxla.Program.load({programs!r} + "/" + name)
    return cyxla.compile_program(program, route={route!r})[0]

def calling():
    import jax
    def callback(x):
        time.sleep(0.001)
        return 2 * x + 1
    types = jax.ShapeDtypeStruct((8,), "f4")
    program = cyxla.lower(lambda x: jax.pure_callback(callback, types, x), [types])
    return cyxla.compile_program(program)[0]

def compiling():
    with contextlib.suppress(cyxla.ShutdownError):
        while True:
            saved("line")

entered = threading.Semaphore(0)

def run(executable):
    array = np.ones(executable.input_types[0].shape, executable.input_types[0].dtype)
    # A traceback would need stderr, which CPython does not give daemon threads at the very end.
    with contextlib.suppress(cyxla.ShutdownError):
        executable.run([array])
        entered.release()
        while True:
            executable.run([array])

def start(executable):
    threading.Thread(target=run, args=(executable,), daemon=True).start()
"""
_NATIVE = "c_threads.start((({}, (bytes(32),), (np.ones(8, 'f4').tobytes(),)),), 'kca', 10**12)"
_THREADS = {
    "Python": "start(saved('line')); long = saved('long'); start(long); start(long)",
    "native": _NATIVE.format("saved('line')") + "; entered.release()",
    "both": "start(saved('long')); " + _NATIVE.format("saved('line')"),
    # Compile once here: CPython loses an interrupt during the imports of the first compilation.
    "compiling": "saved('line')\n"
    "for _ in range(4): threading.Thread(target=compiling, daemon=True).start()\n"
    "entered.release()",
    "callbacks": "called = calling(); start(called); " + _NATIVE.format("called"),
    # More than the plugin executes at once, so that some wait.
    "many callbacks": "called = calling()\nfor _ in range(40): start(called)\n",
}
_ENDS = {
    "return": ("", 0),
    "exit": ("sys.exit(7)", 7),
    "exception": ("raise RuntimeError('the end')", 1),
    "exit of a thread": (
        "thread = threading.Thread(target=sys.exit, args=(3,)); thread.start(); thread.join()",
        0,
    ),
    "interrupt": ("import signal; signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with saved programs: one of microseconds, one of milliseconds."""
    folder = tmp_path_factory.mktemp("programs")
    line = cyxla.lower(lambda x: 2 * x + 1, [jax.ShapeDtypeStruct((8,), jnp.float32)])
    line.save(folder / "line")
    long = cyxla.lower(
        lambda x: heat(x, num_steps=3000), [jax.ShapeDtypeStruct((16,), jnp.float32)]
    )
    long.save(folder / "long")
    return folder


@pytest.mark.timeout(_REPETITIONS * _SECONDS)  # each has its own time limit
@pytest.mark.parametrize(
    ("threads", "route"),
    [
        (threads, route)
        for threads in _THREADS
        for route in (["pjrt"] if "callbacks" in threads else ["pjrt", "auto"])
    ],
)
def test_the_process_ends_while_threads_execute(
    modules: Path, programs: Path, threads: str, route: str
) -> None:
    start = _START.format(modules=str(modules), programs=str(programs), route=route)
    ends = list(_ENDS.items())
    first = 3 * list(_THREADS).index(threads) + (route == "auto")
    for repetition in range(_REPETITIONS):
        end, (code, status) = ends[(first + repetition) % len(ends)]
        script = f"{start}\n{_THREADS[threads]}\nentered.acquire()\ntime.sleep(0.02)\n{code}\n"
        where = f"repetition {repetition}, {end}"
        try:
            ended = run_process("-X", "faulthandler", "-c", script, seconds=_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{where}: it hangs")
        assert ended.returncode == status, f"{where}: {ended.returncode}\n{ended.stderr}"
        assert "Fatal" not in ended.stderr, f"{where}: {ended.stderr}"
