# SPDX-License-Identifier: Apache-2.0
"""cyxla and its process: signals, children, small stacks, other interpreters, standard error."""

from __future__ import annotations

from pathlib import Path

import pytest

from child_process import run_process
from cpu_plugins import CPU_LIBRARIES, run_with_plugin, variables
from support.native import run_with_modules

_COMPILE = """
import ctypes, os, signal, sys, threading, time
import jax, jax.numpy as jnp, numpy as np, cyxla

def compiled(function, size, route="auto"):
    program = cyxla.lower(function, [jax.ShapeDtypeStruct((size,), "f4")])
    return cyxla.compile_program(program, route=route)[0]

def long(x):
    return jax.lax.fori_loop(0, 100_000, lambda _, y: jnp.sin(y) + x, x)
"""


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_signals_are_left_alone_and_an_interrupt_comes_after_the_execution(library: str) -> None:
    run_with_plugin(
        library,
        _COMPILE
        + """
libc = ctypes.CDLL(None, use_errno=True)

def dispositions():
    # sigaction() of every signal: handler, mask and flags, in glibc's layout.
    found = {}
    for number in range(1, signal.NSIG):
        action = ctypes.create_string_buffer(152)
        if libc.sigaction(number, None, action) == 0:
            found[number] = action.raw[:16] + action.raw[136:140]
    assert len(found) > 50
    return found, signal.pthread_sigmask(signal.SIG_BLOCK, [])

jax.jit(lambda x: x).trace(jax.ShapeDtypeStruct((2,), "f4")).lower()  # JAX may change them
before = dispositions()
cyxla.initialize()
assert dispositions() == before
executables = [compiled(long, 64, route) for route in ("pjrt", "auto")]
assert dispositions() == before
x = np.full(64, 0.5, "f4")
(wanted,) = executables[0].run([x])
assert dispositions() == before

for executable in executables:
    out = np.zeros(64, "f4")
    start = time.perf_counter()
    executable.run([x])
    seconds = time.perf_counter() - start
    timer = threading.Timer(seconds / 10, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        # An execution ends before its interrupt is delivered.
        while True:
            out[:] = 0
            executable.run([x], out=[out])
    except KeyboardInterrupt:
        assert out.tobytes() in (wanted.tobytes(), bytes(256))
    assert executable.run([x])[0].tobytes() == wanted.tobytes()
assert cyxla.error_info().count == 0

# A signal that is sent to the process is handled once, on whichever thread it arrives.
caught = []
signal.signal(signal.SIGUSR1, lambda number, _: caught.append(number))
for _ in range(20):
    os.kill(os.getpid(), signal.SIGUSR1)
    deadline = time.monotonic() + 20
    while not caught and time.monotonic() < deadline:
        time.sleep(0.001)
    assert caught.pop() == signal.SIGUSR1 and not caught
""",
    )


_POOL = """
import concurrent.futures, multiprocessing, pickle, sys
import numpy as np, cyxla

def double(program):
    executable, _ = cyxla.compile_program(program)
    return executable.run([np.ones(3, "f4")])[0].tolist()

def begin(program, executable):
    # A pool's initializer.
    global answers
    x = [np.ones(3, "f4")]
    calls = (cyxla.initialize, lambda: cyxla.compile_program(program), lambda: executable.run(x),
             lambda: executable.bind(x), executable.warm_up)
    answers = []
    for call in calls:
        try:
            call()
        except cyxla.ForkError as error:
            answers.append('multiprocessing.get_context("spawn") or "forkserver"' in str(error))

def answers_of(_):
    return answers

if __name__ == "__main__":
    import jax
    program = cyxla.lower(lambda x: 2 * x, [jax.ShapeDtypeStruct((3,), "f4")])
    print(double(program))
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        print(pool.apply(double, (program,)))
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        print(pool.submit(double, program).result())
    import os, warnings
    warnings.simplefilter("ignore")
    with concurrent.futures.ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("fork")
    ) as pool:
        try:
            pool.submit(double, program).result(timeout=60)
        except cyxla.ForkError as error:
            print('get_context("spawn")' in str(error))
    executable, _ = cyxla.compile_program(program)
    context = multiprocessing.get_context("fork")
    with context.Pool(2, initializer=begin, initargs=(program, executable)) as pool:
        print(pool.map_async(answers_of, range(2)).get(timeout=60) == [[True] * 5] * 2)
"""


def test_spawned_processes_work_and_forked_ones_get_an_error(tmp_path: Path) -> None:
    script = tmp_path / "pools.py"
    script.write_text(_POOL)
    ended = run_process(str(script))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["[2.0, 2.0, 2.0]"] * 3 + ["True"] * 2


def test_every_call_fails_at_once_in_a_forked_child(tmp_path: Path) -> None:
    # Without JAX in the parent: the forked child of a process that lowered crashes in JAX at exit.
    path = tmp_path / "program"
    run_with_plugin(
        CPU_LIBRARIES[0],
        _COMPILE
        + f"""
import pickle
program = cyxla.lower(long, [jax.ShapeDtypeStruct((64,), "f4")])
open({str(path)!r}, "wb").write(pickle.dumps(program))
""",
    )
    run_with_plugin(
        CPU_LIBRARIES[0],
        f"""
import os, pickle, signal, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np, cyxla
from cyxla import _runtime
program = pickle.load(open({str(path)!r}, "rb"))
"""
        """
executables = [cyxla.compile_program(program, route=route)[0] for route in ("pjrt", "auto")]
x = np.zeros(64, "f4")
bound = [executable.bind([x]) for executable in executables]
calls = [
    cyxla.initialize, cyxla.runtime_info, lambda: cyxla.compile_program(program),
    *[lambda e=e: e.run([x]) for e in executables], *[lambda e=e: e.bind([x]) for e in executables],
    *[lambda e=e: e.warm_up() for e in executables], *bound,
    lambda: _runtime.serialize(executables[0]), _runtime.direct_refusal,
]
busy = True
def work():
    while busy:
        executables[0].run([x])
thread = threading.Thread(target=work, daemon=True)
thread.start()
for ending in ("leave", "fall off the end"):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        failures = 0
        for call in calls:
            try:
                call()
            except cyxla.ForkError as error:
                failures += "spawn" in str(error)
        if failures != len(calls):
            os._exit(6)
        if ending == "leave":
            import jax
            lowered = cyxla.lower(lambda x: x + 1, [jax.ShapeDtypeStruct((2,), "f4")])
            os._exit(5 if lowered.inputs else 7)
        sys.exit(5)  # runs the exit functions and destroys everything
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 5, (ending, status)
busy = False
thread.join()
executables[0].run([x])
""",
    )


@pytest.mark.parametrize("plugin", CPU_LIBRARIES)
def test_threads_with_small_stacks(modules: Path, plugin: str) -> None:
    # Two of the plugins work on their own threads; the third works on the caller's.
    run_with_modules(
        modules,
        """
        import c_threads
        from support.cycles import compiled, cycle_of
        for name in ("rosenbrock", "heat", "switch"):
            for route in ("pjrt", "direct"):
                program = (compiled(name, route), *cycle_of(name))
                team = c_threads.start((program,), "kpu", 20, stack_bytes=64 << 10)
                done = c_threads.join(team)[:3]
                assert done == (0, 0, ""), (name, route, done)
        """,
        env=variables(plugin),
    )


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_nothing_is_written_to_standard_error(library: str) -> None:
    code = _COMPILE + (
        "for route in ('pjrt', 'auto'):\n"
        "    compiled(long, 8, route).run([np.ones(8, 'f4')])\n"
        "print(len(cyxla.runtime_info().plugin.create_options) > 0)\n"
    )
    # JAX sets the plugin's log level too, so once without JAX.
    alone = (
        "import sys, cyxla\ncyxla.initialize(jax_targets=False)\nprint('jax' not in sys.modules)\n"
    )
    for code_of_child in (code, alone):
        ended = run_process("-c", code_of_child, env=variables(library))
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_another_interpreter_of_the_process_is_refused() -> None:
    # If NumPy or ctypes are refused first, the message is theirs.
    ended = run_process(
        "-c",
        """
import cyxla
cyxla.initialize(jax_targets=False)
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), '''
try:
    import cyxla
    cyxla.runtime_info()
except Exception as error:
    print("refused:", error, flush=True)
''')
print(cyxla.runtime_info().platform)
""",
    )
    assert ended.returncode == 0, ended.stderr
    refusal, after = ended.stdout.splitlines()
    assert refusal.startswith("refused: ")
    assert "interpreter" in refusal
    assert "Install cyxla" not in refusal
    assert after == "cpu"
