# SPDX-License-Identifier: Apache-2.0
"""`compile_programs`: order, parallelism, errors, Ctrl-C and the progress bar."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from child_process import run_code
from cyxla import runtime
from cyxla.compilation import batch, compile as compilation
from cyxla.compilation.batch import compile_programs
from cyxla.compilation.settings import CompileRequest
from cyxla.errors import ArgumentError, CompileError, PluginError, UnsupportedError
from cyxla.lowering.lower import lower
from cyxla.program import Program

S = jax.ShapeDtypeStruct


def scaled(number: int, platform: str = "cpu") -> Program:
    return lower(lambda x: x * number, [S((5,), "f4")], platform=platform, name=f"scaled{number}")


def impossible(name: str = "impossible") -> Program:
    call = jax.ffi.ffi_call("my_missing_target", S((5,), np.float32))
    return lower(call, [S((5,), "f4")], platform="cpu", name=name)


@pytest.mark.parametrize("max_workers", [None, 1, np.int64(3), 50])
def test_results_have_the_order_of_the_programs(max_workers: Any) -> None:
    compiled = compile_programs(map(scaled, range(7)), max_workers=max_workers)
    assert isinstance(compiled, tuple)
    for number, (executable, statistics) in enumerate(compiled):
        assert isinstance(statistics, cyxla.CompileStatistics)
        assert executable.name == f"scaled{number}"
        assert executable.run([np.ones(5)])[0].tolist() == [number] * 5


def test_no_programs() -> None:
    assert compile_programs([]) == ()


def test_they_are_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = threading.Barrier(3)
    compile_checked = compilation.compile_checked

    def meet_and_compile(request: Any) -> Any:
        barrier.wait(60)  # fails unless three threads arrive
        return compile_checked(request)

    monkeypatch.setattr(batch, "compile_checked", meet_and_compile)
    assert len(compile_programs([scaled(number) for number in range(6)], max_workers=3)) == 6


def test_arguments_reach_each_program() -> None:
    programs = [lower(jnp.tanh, [S((300_000,), "f4")], platform="cpu")] * 2
    compiled = compile_programs(
        programs,
        options={"xla_backend_optimization_level": 0},
        intra_op_threads=1,
        outputs_in_place=True,
    )
    _, alone = compilation.compile_program(
        programs[0],
        options={"xla_backend_optimization_level": 0},
        intra_op_threads=1,
        outputs_in_place=True,
    )
    for _, statistics in compiled:
        assert statistics._replace(seconds=0) == alone._replace(seconds=0)


def test_the_first_error_names_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    kept: list[weakref.ref[Any]] = []
    compile_checked = compilation.compile_checked

    class Result:
        """Stands for an Executable, which has no weak references."""

        def __init__(self, compiled: Any) -> None:
            self.compiled = compiled

    def compile_and_note(request: CompileRequest) -> Any:
        started.append(request.program.name)
        result = Result(compile_checked(request))
        kept.append(weakref.ref(result))
        return result

    monkeypatch.setattr(batch, "compile_checked", compile_and_note)
    programs = [scaled(0), scaled(1), impossible("first"), scaled(3), impossible("second")]
    with pytest.raises(CompileError) as caught:
        compile_programs(programs, max_workers=1)
    message = str(caught.value)
    assert message.startswith("programs[2], 'first': program 'first' cannot be compiled by ")
    assert "my_missing_target" in message
    # Later programs were not started, and the traceback keeps no compiled program.
    assert started[:3] == ["scaled0", "scaled1", "first"]
    assert len(started) < 5
    gc.collect()
    assert len(kept) >= 2
    assert [reference() for reference in kept] == [None] * len(kept)


def test_other_errors_get_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise UnsupportedError("not today")

    monkeypatch.setattr(batch, "compile_checked", fail)
    with pytest.raises(UnsupportedError, match="not today") as caught:
        compile_programs([scaled(1)])
    assert caught.value.__notes__ == ["cyxla was compiling programs[0], 'scaled1'"]


def test_a_program_of_another_platform() -> None:
    message = r"programs\[1\], 'scaled2': program 'scaled2' was lowered for 'cuda'"
    with pytest.raises(CompileError, match=message):
        compile_programs([scaled(1), scaled(2, "cuda")])


def test_a_plugin_without_outputs_in_place_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    info = runtime.runtime_info()._replace(inplace_outputs=False)
    monkeypatch.setattr(runtime, "runtime_info", lambda: info)
    with pytest.warns(RuntimeWarning, match="cannot write outputs in place") as caught:
        compile_programs([scaled(1), scaled(2)], outputs_in_place=True)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("programs", "arguments", "message"),
    [
        (3, {}, r"programs must be a list of programs, got int; for one .*cyxla\.compile_program"),
        ([1], {}, r"programs\[0\] must be a cyxla\.Program, got int; cyxla\.lower makes one"),
        ([], {"max_workers": 0}, "max_workers must be None or at least 1, got 0"),
        ([], {"max_workers": True}, "max_workers must be .*, got True"),
        ([], {"max_workers": 1.5}, "max_workers must be .*, got 1.5"),
        ([], {"options": 3}, "options must be a mapping"),
        ([], {"intra_op_threads": 2}, "intra_op_threads must be None or 1, got 2"),
    ],
)
def test_wrong_arguments(programs: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        compile_programs(programs, **arguments)


def test_one_program_is_not_a_list() -> None:
    program: Any = scaled(1)
    with pytest.raises(ArgumentError, match="programs must be a list of programs, got Program"):
        compile_programs(program)


def test_without_a_plugin_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise PluginError("no PJRT plugin is installed")

    monkeypatch.setattr(runtime, "runtime_info", missing)
    with pytest.raises(PluginError):
        compile_programs([scaled(1)])


def test_ctrl_c_waits_for_what_is_in_flight_and_starts_no_more() -> None:
    output = run_code("""
        import signal, threading, time, jax, numpy as np, cyxla
        from cyxla.compilation import batch, compile as compilation
        started, ended, sent = [], [], threading.Event()
        def slow(request):
            started.append(request.program.name)
            if len(started) == 2:
                time.sleep(0.5)  # until the others are queued
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                sent.set()
            assert sent.wait(60)
            time.sleep(1)
            result = compilation.compile_checked(request)
            ended.append(request.program.name)
            return result
        batch.compile_checked = slow
        programs = [cyxla.lower(lambda x: x * n, [jax.ShapeDtypeStruct((3,), "f4")], name=f"p{n}")
                    for n in range(20)]
        try:
            cyxla.compile_programs(programs, max_workers=2)
        except KeyboardInterrupt:
            print("interrupted", len(started), len(started) == len(ended))
        names = [thread.name for thread in threading.enumerate()]
        print(names)
        print(cyxla.compile_programs(programs[:1])[0][0].run([np.ones(3)])[0])
    """)
    assert output.splitlines() == ["interrupted 2 True", "['MainThread']", "[0. 0. 0.]"]


# The progress bar.


class Terminal:
    """A terminal for tqdm."""

    def __init__(self) -> None:
        self.text = ""
        self.encoding = "utf-8"

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    terminal = Terminal()  # not in a fixture: pytest replaces stderr before each phase
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def test_no_bar_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(batch, "_BAR_DELAY_SECONDS", 0)
    compile_programs([scaled(1)])
    assert capfd.readouterr().err == ""


def test_no_bar_when_quick_or_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    compile_programs([scaled(1)])
    monkeypatch.setattr(batch, "_BAR_DELAY_SECONDS", 0)
    compile_programs([scaled(1)], progress=False)
    assert terminal.text == ""
    monkeypatch.setattr(sys, "stderr", None)
    compile_programs([scaled(1)])


def test_a_bar_when_compiling_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    compile_checked = compilation.compile_checked
    ready = threading.Event()

    def slow(request: Any) -> Any:
        ready.wait(1.5)
        return compile_checked(request)

    monkeypatch.setattr(batch, "compile_checked", slow)
    monkeypatch.setattr(batch, "_BAR_DELAY_SECONDS", 0.2)
    compile_programs([scaled(1), scaled(2)], max_workers=2)
    # The bar appears before the first program ends.
    assert "compiling:   0%" in terminal.text
    assert "2/2" in terminal.text


def test_a_bar_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    compile_programs([scaled(1), scaled(2)], progress=True)
    assert "compiling: 100%" in capfd.readouterr().err
