# SPDX-License-Identifier: Apache-2.0
"""The runtime and its process: environment, threads, forks, exit, and missing packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cyxla
from c_library import build_library
from child_process import run_code, run_process
from cyxla.errors import ArgumentError
from cyxla.plugins.thread_cap import (
    check_devices,
    check_pool_variables,
    checked_threads,
    max_threads,
    threads_from_environment,
)
from fake_packages import install

_LIMIT = f"{max_threads()} (256 for each CPU of this machine)"


def test_a_preferred_platform_without_its_device(tmp_path: Path) -> None:
    # Stands for JAX's GPU plugin on a machine without a GPU: it loads, then fails.
    library = build_library(tmp_path / "cuda.so", "const void* GetPjrtApi(void) { return 0; }")
    install(
        tmp_path,
        "jax-cuda13-pjrt",
        "9.9",
        {"jax_plugins/xla_cuda13/xla_cuda_plugin.so": library.read_bytes()},
    )
    code = f"""
        import os, sys
        sys.path.insert(0, {str(tmp_path)!r})
        import cyxla
        for platform in (None, "cuda"):
            try:
                cyxla.initialize(platform=platform)
            except cyxla.PluginError as error:
                print(str(error).replace("\\n", "|"))
        os.environ["CYXLA_PLATFORM"] = "cpu"
        print(cyxla.runtime_info().platform)
    """
    by_preference, on_request, after = run_code(code).splitlines()
    failure, _, advice = on_request.rpartition("|")
    assert advice == "To compute on the CPU instead, use platform='cpu' or set CYXLA_PLATFORM=cpu"
    assert by_preference == failure + (
        "|'cuda' was chosen as the most preferred platform that has a plugin. "
        "If this machine has no such device, set CYXLA_PLATFORM=cpu"
    )
    assert "xla_cuda_plugin.so" in failure
    assert after == "cpu"


_COUNT_THREADS = """
    import os, cyxla
    info = cyxla.initialize({arguments}jax_targets=False)
    print(len(os.listdir("/proc/self/task")), info.threads, os.environ.get("PJRT_NPROC"))
"""


def _threads(arguments: str, **env: str) -> tuple[int, str, str]:
    count, threads, variable = run_code(_COUNT_THREADS.format(arguments=arguments), env).split()
    return int(count), threads, variable


def test_threads_cap_the_pool() -> None:
    one, reported, variable = _threads("threads=1, ")
    assert (reported, variable) == ("1", "None")
    assert _threads("threads=7, ")[0] > one
    assert _threads("", CYXLA_NUM_THREADS="1") == (one, "1", "None")
    # The argument overrides the variable, and XLA's own variable is restored.
    assert _threads("threads=1, ", CYXLA_NUM_THREADS="x", PJRT_NPROC="5") == (one, "1", "5")
    uncapped, reported, variable = _threads("", PJRT_NPROC="7")
    assert (uncapped > one, reported, variable) == (True, "None", "7")


@pytest.mark.parametrize("value", ["0", "two", "-1", "1.5", " ", "1000000", "²"])
def test_an_invalid_number_of_threads_in_the_environment(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CYXLA_NUM_THREADS", value)
    shown = value if value.isascii() and value.isdigit() else repr(value)
    with pytest.raises(ArgumentError) as caught:
        threads_from_environment()
    assert str(caught.value) == (
        f"the environment variable CYXLA_NUM_THREADS is {shown}; it takes an int from 1 to {_LIMIT}"
    )


def test_a_wrong_environment_can_be_put_right() -> None:
    printed = run_code(
        """
        import os, cyxla
        try:
            cyxla.runtime_info()
        except cyxla.ArgumentError as error:
            print(error)
        print(cyxla.is_initialized())
        os.environ["CYXLA_NUM_THREADS"] = ""
        print(cyxla.initialize(jax_targets=False).threads)
        """,
        env={"CYXLA_NUM_THREADS": "none"},
    )
    assert printed.splitlines() == [
        f"the environment variable CYXLA_NUM_THREADS is 'none'; it takes an int from 1 to {_LIMIT}",
        "False",
        "None",
    ]


@pytest.mark.parametrize("threads", [0, -1, max_threads() + 1, True, 1.0, "1"])
def test_an_invalid_number_of_threads(threads: object) -> None:
    with pytest.raises(ArgumentError) as caught:
        cyxla.initialize(threads=threads)  # type: ignore[arg-type]
    assert str(caught.value) == f"threads is {threads!r}; it takes an int from 1 to {_LIMIT}"
    assert checked_threads(max_threads()) == max_threads()


# The formats of numbers that XLA reads; it ignores others.
@pytest.mark.parametrize("name", ["PJRT_NPROC", "NPROC"])
@pytest.mark.parametrize("value", ["32768", " +32768", "2147483647"])
def test_a_pool_in_the_environment_that_xla_would_hang_over(name: str, value: str) -> None:
    printed = run_code(
        """
        import os, jax, jax.numpy as jnp, cyxla
        struct = jax.ShapeDtypeStruct((2,), jnp.float32)
        for call in (cyxla.runtime_info, lambda: cyxla.lower(jnp.sin, [struct], platform="cpu")):
            try:
                call()
            except cyxla.ArgumentError as error:
                print(error)
        print(cyxla.initialize(threads=1, jax_targets=False).threads)
        """,
        env={name: value},
    )
    refusal = (
        f"the environment variable {name} is {value}, and XLA would hang while it starts that many"
        f" threads; unset it, or set it to at most {_LIMIT}"
    )
    assert printed.splitlines() == [refusal, refusal, "1"]


@pytest.mark.parametrize("value", ["-5", "0", str(max_threads())])
def test_a_pool_in_the_environment_that_xla_can_bear(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PJRT_NPROC", value)
    monkeypatch.setenv("NPROC", "32768")  # XLA does not read it
    check_pool_variables()


@pytest.mark.parametrize("value", ["", "abc", "99999999999999", "32768x"])
def test_xla_reads_the_second_variable_where_the_first_is_not_a_number(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PJRT_NPROC", value)
    monkeypatch.setenv("NPROC", "32768")
    with pytest.raises(ArgumentError, match="the environment variable NPROC is 32768"):
        check_pool_variables()
    monkeypatch.setenv("NPROC", "x")
    check_pool_variables()


def test_as_many_threads_as_the_machine_may_have_can_be_started() -> None:
    count, reported, _ = _threads(f"threads={max_threads()}, ")
    assert count > max_threads()
    assert reported == str(max_threads())


def test_more_devices_than_the_machine_can_have_threads() -> None:
    with pytest.raises(ArgumentError) as caught:
        check_devices({"cpu_device_count": 1_000_000}, None)
    assert str(caught.value) == (
        "the option cpu_device_count is 1000000, and the pool has a thread for each device; ask for"
        f" at most {_LIMIT}"
    )


@pytest.mark.parametrize("jax_targets", [None, 1, "no"])
def test_an_invalid_jax_targets(jax_targets: Any) -> None:
    with pytest.raises(ArgumentError, match="jax_targets must be True or False, got"):
        cyxla.initialize(jax_targets=jax_targets)


@pytest.mark.parametrize("plugin", [3, b"plugin.so", ["plugin.so"]])
def test_an_invalid_plugin(plugin: Any) -> None:
    for _ in range(2):  # before one is loaded, and afterwards
        with pytest.raises(ArgumentError, match=r"plugin is .*; give a cyxla\.Plugin or the path"):
            cyxla.initialize(plugin)
        cyxla.initialize()


def test_more_devices_than_threads() -> None:
    check_devices({"cpu_device_count": 2}, 2)
    check_devices({"cpu_device_count": 2}, None)
    check_devices({}, 1)
    printed = run_code("""
        import cyxla
        options = {"cpu_device_count": 3}
        try:
            cyxla.initialize(platform="cpu", options=options, threads=2, jax_targets=False)
        except cyxla.ArgumentError as error:
            print(error)
    """)
    assert printed.strip() == (
        "threads=2 has no effect with the option cpu_device_count=3: the pool has a thread for "
        "each device. Ask for at most as many devices as threads"
    )


def test_threads_that_initialize_at_once_get_one_runtime() -> None:
    printed = run_code("""
        import threading, warnings
        import cyxla
        from support.threads import run_all
        warnings.simplefilter("error")
        start = threading.Barrier(8)
        infos = []
        def work():
            start.wait()
            infos.append(cyxla.initialize(jax_targets=False))
        run_all(*[work] * 8)
        print(len(infos), all(info is infos[0] for info in infos))
    """)
    assert printed == "8 True\n"


def test_other_threads_find_the_runtime_complete() -> None:
    printed = run_code("""
        import threading
        import cyxla
        from cyxla.ffi import targets
        worker = threading.Thread(target=cyxla.initialize)
        worker.start()
        while not cyxla.is_initialized():
            worker.join(0.001)
        print(targets.jaxlib_registered())
        worker.join()
    """)
    assert printed == "(62, None)\n"


def test_a_forked_child_gets_an_error_and_ends() -> None:
    printed = run_code(
        """
        import os, sys
        import cyxla
        from cyxla import runtime
        cyxla.initialize(jax_targets=False)
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            print(cyxla.is_initialized())
            for call in (cyxla.initialize, cyxla.runtime_info):
                try:
                    call()
                except cyxla.ForkError as error:
                    text = str(error).replace(str(os.getpid()), "CHILD")
                    print(text.replace(str(parent), "PARENT"))
            sys.exit(3)  # with the exit functions of the parent
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), cyxla.is_initialized())
        """,
        seconds=30,
    )
    message = (
        "process CHILD was forked from process PARENT after that had initialized the runtime; its "
        "threads do not exist here. Start worker processes with "
        'multiprocessing.get_context("spawn") or "forkserver", or fork before cyxla is used'
    )
    assert printed.splitlines() == ["False", message, message, "3 True"]


def test_a_fork_before_initializing_works() -> None:
    printed = run_code(
        """
        import os, threading
        import cyxla
        from cyxla import runtime
        # Another thread holds the lock; the child inherits the lock, but not the thread.
        held, forked = threading.Event(), threading.Event()
        def hold():
            with runtime._lock:
                held.set()
                forked.wait()
        threading.Thread(target=hold).start()
        held.wait()
        child = os.fork()
        forked.set()
        print(cyxla.initialize(jax_targets=False).platform, flush=True)
        if child:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        seconds=60,
    )
    assert printed == "cpu\ncpu\n0\n"


def test_the_runtime_shuts_down_before_the_interpreter() -> None:
    # Exit functions run in reverse order: this one after cyxla's.
    ended = run_process(
        "-c",
        "import atexit, numpy as np, jax, jax.numpy as jnp, cyxla\n"
        "def late():\n"
        "    try:\n"
        "        executable.run([np.ones(2, np.float32)])\n"
        "    except cyxla.ShutdownError as error:\n"
        "        print('ShutdownError', error)\n"
        "atexit.register(late)\n"
        "cyxla.initialize(jax_targets=False)\n"
        "program = cyxla.lower(jnp.sin, [jax.ShapeDtypeStruct((2,), jnp.float32)])\n"
        "executable, _ = cyxla.compile_program(program)\n",
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("ShutdownError ")


def test_without_the_extension_the_error_says_what_to_do() -> None:
    printed = run_code("""
        import sys
        sys.modules["cyxla._runtime"] = None
        import cyxla
        print(len(cyxla.available_plugins()) >= 3)
        try:
            cyxla.initialize()
        except cyxla.Error as error:
            print(error)
        print(cyxla.is_initialized(), cyxla.error_info().count)
    """)
    assert printed.splitlines() == [
        "True",
        "cyxla's extension module cannot be imported (import of cyxla._runtime halted; None in "
        "sys.modules). Install cyxla with pip; in a source tree that is not installed only plugins "
        "can be found",
        "False 0",
    ]


def test_no_plugin_at_all(tmp_path: Path) -> None:
    # Without a plugin lowering works, and compiling says what to install.
    code = """
        import sys
        import numpy, ml_dtypes, jax, cyxla
        from cyxla import runtime, _runtime
        from cyxla.compilation import compile as compilation
        from cyxla.lowering import tracing
        sys.path[:] = [path for path in sys.path if "site-packages" not in path]
        print(cyxla.available_plugins())
        program = cyxla.lower(lambda x: x * 2, [jax.ShapeDtypeStruct((2,), "float32")])
        try:
            cyxla.compile_program(program)
        except cyxla.PluginError as error:
            print(error)
    """
    lines = run_code(code).splitlines()
    assert lines[:4] == [
        "()",
        "no PJRT plugin is installed.",
        "Install one:  pip install lammps-jax-pjrt-cpu",
        "or set CYXLA_PJRT_PLUGIN to the path of a plugin's shared library.",
    ]


def test_after_shutdown_the_plugin_still_counts_as_loaded() -> None:
    output = run_code("""
        import cyxla
        from cyxla import _runtime
        cyxla.initialize()
        _runtime.shutdown()
        print(cyxla.is_initialized())
    """)
    assert output == "True\n"
