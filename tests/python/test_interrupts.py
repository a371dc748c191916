# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while the main thread waits for the plugin: said at once, and raised after the wait."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

# `waiting(call)` sends SIGINT while the main thread is inside a long native call, and prints when
# that ended. A try counts only if the signal came in time: the machine may be busy.
_PRELUDE = """
import os, signal, sys, threading, time
import jax, jax.numpy as jnp, numpy as np, cyxla
from cyxla import _runtime
def say(text):
    os.write(2, (text + "\\n").encode())
def waiting(call):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        call()
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:
        say("interrupted")
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


def _printed(code: str) -> list[str]:
    """What a child process writes to stderr, in order, cyxla's notice included."""
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_PRELUDE + code)],
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
