# SPDX-License-Identifier: Apache-2.0
"""Which route a program takes, who chooses it, and where cyxla reports it."""

from __future__ import annotations

import re
import textwrap
import time
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import cyxla
from child_process import run_process
from cpu_plugins import CPU_LIBRARIES, run_with_plugin
from serialized_steps import step_kinds
from support.arrays import build

_PRELUDE = """
    import jax, jax.numpy as jnp, numpy as np, cyxla
    def lower(function, *shape):
        return cyxla.lower(function, [jax.ShapeDtypeStruct(shape, "f8")], platform="cpu")
    simple = lower(lambda x: jnp.sin(x) * 2, 3)
    loop = lower(lambda x: jax.lax.while_loop(
        lambda s: (s[0].sum() > 1) & (s[1] < 99), lambda s: (s[0] / 2, s[1] + 1), (x, 0)), 3)
    sort = lower(jnp.sort, 3)
    def show(program, route="auto"):
        try:
            executable, _ = cyxla.compile_program(program, route=route)
            print(executable.route, "|", executable.route_reason)
        except cyxla.Error as error:
            print(type(error).__name__, "|", str(error).replace(chr(10), " "))
"""


def _printed(code: str, **env: str) -> list[str]:
    code = textwrap.dedent(_PRELUDE) + textwrap.dedent(code)
    ended = run_process("-c", code, env=env)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def program(function: object, *shape: int) -> cyxla.Program:
    return cyxla.lower(function, [jax.ShapeDtypeStruct(shape, "float64")], platform="cpu")


def double(x: object) -> object:
    return x * 2


def cholesky(x: object) -> object:
    return jnp.linalg.cholesky(x)


@pytest.mark.parametrize("route", ["auto", "direct", "pjrt"])
def test_the_route_of_a_simple_program(route: str) -> None:
    executable, _ = cyxla.compile_program(program(double, 3), route=route)
    expected = ("pjrt", "route='pjrt' was asked for") if route == "pjrt" else ("direct", "")
    assert (executable.route, executable.route_reason) == expected
    assert executable.run([[1, 2, 3]])[0].tolist() == [2, 4, 6]


def test_direct_is_the_default() -> None:
    assert build(double, ((3,), "f8")).route == "direct"


def test_the_route_is_in_the_spec() -> None:
    from direct_calls import NativeProgram

    for route, number in (("pjrt", 0), ("direct", 1)):
        executable, _ = cyxla.compile_program(program(double, 3), route=route)
        assert NativeProgram(executable).route == number


def test_a_refused_program_says_why() -> None:
    executable, _ = cyxla.compile_program(program(cholesky, 4, 4))
    assert executable.route == "pjrt"
    assert "is a custom call, which only the plugin runs" in executable.route_reason
    with pytest.raises(cyxla.UnsupportedError) as caught:
        cyxla.compile_program(program(cholesky, 4, 4), route="direct")
    assert executable.route_reason in str(caught.value)
    assert "cholesky" in str(caught.value)


def test_loops_within_loops_are_not_run_for_hours_to_try_them() -> None:
    def long(x: Any) -> Any:
        def outer(_: Any, x: Any) -> Any:
            return jax.lax.fori_loop(0, 100_000, lambda _, x: jnp.sin(x) + 1, x)

        return jax.lax.fori_loop(0, 1_000_000, outer, x)

    start = time.perf_counter()
    executable, _ = cyxla.compile_program(program(long, 3))
    assert time.perf_counter() - start < 60  # one execution takes days
    assert executable.route_reason == (
        "its loops, including nested ones, run more than 1000000 times, so calling it directly"
        " would not help"
    )


def test_a_loop_whose_body_takes_long_is_not_tried() -> None:
    def slow(x: Any) -> Any:
        return jax.lax.fori_loop(0, 1_000_000, lambda _, x: jnp.tanh(x) + 1, x)

    executable, _ = cyxla.compile_program(program(slow, 50_000), intra_op_threads=1)
    assert executable.route_reason == (
        "a call takes more than about 20 ms, so calling it directly would not help"
    )


def test_a_loop_that_does_not_end_is_counted_where_that_is_possible() -> None:
    def endless(x: Any) -> Any:
        return jax.lax.while_loop(lambda x: x[0] == x[0], lambda x: jnp.cumsum(jnp.sin(x)), x)

    executable, _ = cyxla.compile_program(program(endless, 64))
    assert re.fullmatch(
        "it has a loop of unknown trip count, and on test inputs a kernel failed or the loop did"
        r" not end within \d+ trips \(the child process exited with status 1\)",
        executable.route_reason,
    )


def test_a_loop_inside_a_kernel_is_stopped_by_its_own_processor_time() -> None:
    def endless(x: Any) -> Any:
        return jax.lax.while_loop(lambda x: x == x, jnp.sin, x)

    executable, _ = cyxla.compile_program(program(endless))
    assert executable.route_reason.endswith(
        "(the child process used more than 2 s of processor time)"
    )


@pytest.mark.parametrize("route", ["fast", "", "DIRECT", None, 1])
def test_a_route_that_there_is_not(route: object) -> None:
    with pytest.raises(cyxla.ArgumentError) as caught:
        cyxla.compile_program(program(double, 3), route=route)  # type: ignore[arg-type]
    assert str(caught.value) == f"route must be 'auto', 'pjrt' or 'direct', got {route!r}"


def test_outputs_in_place_are_the_plugins() -> None:
    executable, _ = cyxla.compile_program(program(double, 3), outputs_in_place=True)
    assert executable.route == "pjrt"
    assert "in place" in executable.route_reason
    with pytest.raises(cyxla.ArgumentError, match=r"outputs_in_place.*route='direct'"):
        cyxla.compile_program(program(double, 3), outputs_in_place=True, route="direct")


def test_the_environment_turns_direct_calls_off() -> None:
    printed = _printed(
        """
        for route in ("auto", "pjrt", "direct"):
            show(simple, route)
        """,
        CYXLA_DIRECT="0",
    )
    automatic, pjrt, direct = printed
    assert automatic.startswith("pjrt | ")
    assert "CYXLA_DIRECT is 0" in automatic
    assert pjrt == "pjrt | route='pjrt' was asked for"
    assert direct.startswith("UnsupportedError | ")
    assert "CYXLA_DIRECT is 0" in direct


@pytest.mark.parametrize("value", ["", "1"])
def test_the_environment_leaves_direct_calls_on(value: str) -> None:
    printed = _printed("show(simple); show(loop); show(sort)", CYXLA_DIRECT=value)
    assert printed[:2] == ["direct | ", "direct | "]
    assert printed[2].startswith("pjrt | step ")


# pthread_atfork reports every fork, also those that Python does not make.
_COUNT_FORKS = (
    "import ctypes; forks = []; count = ctypes.CFUNCTYPE(None)(lambda: forks.append(1));"
    " ctypes.CDLL(None)['__register_atfork'](count, None, None, None)"
)


def test_a_plugin_is_tried_in_a_child_process_once_and_each_loop_too() -> None:
    printed = _printed(
        f"{_COUNT_FORKS}\n"
        "for program in (simple, sort, simple, loop): show(program); print(len(forks))"
    )
    assert printed[1::2] == ["1", "1", "1", "2"]


def test_without_child_processes_loops_are_refused() -> None:
    printed = _printed(
        f"{_COUNT_FORKS}; show(simple); show(loop); show(loop, 'direct'); print(len(forks))",
        CYXLA_DIRECT="no-fork",
    )
    simple, loop, demanded, forks = printed
    assert forks == "0"
    assert simple == "direct | "
    assert loop.startswith("pjrt | ")
    assert "loop" in loop
    assert "child process" in loop
    assert demanded.startswith("UnsupportedError | ")
    assert "child process" in demanded


@pytest.mark.parametrize("value", ["yes", "2", "off", "NO-FORK", " "])
def test_an_invalid_value_in_the_environment(value: str) -> None:
    (printed,) = _printed("show(simple)", CYXLA_DIRECT=value)
    assert printed == (
        f"ArgumentError | the environment variable CYXLA_DIRECT is {value!r}; it takes 0, 1 or"
        " no-fork"
    )


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_every_plugin_is_admitted(library: str) -> None:
    printed = run_with_plugin(
        library,
        """
        import cyxla
        from cyxla import _runtime
        cyxla.initialize(jax_targets=False)
        print(repr(_runtime.direct_refusal()))
        """,
    )
    assert printed == "''\n"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "  direct calls: yes"),
        ("no-fork", "  direct calls: yes"),
        ("0", "  direct calls: no, the environment variable CYXLA_DIRECT is 0"),
    ],
)
def test_the_report_shows_whether_the_plugin_is_admitted(value: str | None, line: str) -> None:
    ended = run_process("-m", "cyxla", env={} if value is None else {"CYXLA_DIRECT": value})
    assert ended.returncode == 0, ended.stderr
    assert line in ended.stdout.splitlines()


def _field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def _step(kind: str, number: int, content: bytes) -> bytes:
    return _field(1, _field(1, kind.encode()) + _field(2, b"") + _field(number, content))


def _executable(sequence: bytes) -> bytes:
    return _field(1, _field(6, sequence))


def test_the_kinds_of_steps_are_read_from_the_bytes() -> None:
    kernel, copy, sort = _step("kernel", 11, b""), _step("copy", 12, b""), _step("sort", 5, b"")
    assert step_kinds(_field(1, b"")) == set()
    assert step_kinds(_executable(kernel + copy)) == {"kernel", "copy"}
    loop = _step("while", 10, _field(1, kernel) + _field(2, sort) + _field(3, copy))
    assert step_kinds(_executable(loop)) == {"while", "kernel", "sort"}
    branches = _step("conditional", 4, _field(1, kernel) + _field(1, copy + sort))
    assert step_kinds(_executable(branches)) == {"conditional", "kernel", "copy", "sort"}
    call = _step("call", 3, _field(1, branches))
    assert step_kinds(_executable(call)) == {"call", "conditional", "kernel", "copy", "sort"}
    assert step_kinds(_executable(_field(2, b""))) == {"field 2 of a sequence"}


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\x0a",
        b"\x0a\x05",
        b"\x0b\x00",
        _field(1, b"") * 2,
        b"\x08\x01",
        _executable(_step("kernel", 10, b"")),
        _executable(_field(1, _field(1, b"kernel"))),
        b"\xff" * 11,
    ],
)
def test_bytes_of_no_executable_are_refused(broken: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        step_kinds(broken)


# cyxla compares both routes in every branch, or the plugin executes the program.


def _rotated(x: Any) -> Any:
    return jnp.concatenate([x[3:], x[:3]])


def _tail(x: Any) -> Any:
    return jax.lax.fori_loop(0, 50, lambda _, a: jnp.sin(jnp.roll(a, 1)) @ jnp.ones((8, 8)), x)


_BRANCHES: dict[str, Any] = {
    "switch": lambda x, i: jax.lax.switch(i, [lambda x, k=k: jnp.roll(x, k) for k in range(6)], x),
    "large": lambda x, i: jax.lax.cond(x[0] > 1e30, _rotated, lambda x: x + i, x),
    "nested": lambda x, i: jax.lax.cond(
        x[0] > 3, lambda x: jax.lax.cond(i > 20, _tail, jnp.flip, x), lambda x: x * 1.5, x
    ),
    "trips": lambda x, i: jax.lax.fori_loop(0, i, lambda _, a: jnp.roll(a, 1) + jnp.sin(a), x),
}


@pytest.mark.parametrize("name", _BRANCHES)
def test_branches_that_depend_on_numbers_are_reached(name: str) -> None:
    declared = [jax.ShapeDtypeStruct((8,), "float64"), jax.ShapeDtypeStruct((), "int32")]
    lowered = cyxla.lower(_BRANCHES[name], declared, platform="cpu")
    executable, _ = cyxla.compile_program(lowered)
    assert (executable.route, executable.route_reason) == ("direct", "")


def test_a_branch_that_no_input_reaches_is_named() -> None:
    # No test inputs have this sum, and the branch contains more than kernels.
    unlikely = program(
        lambda x: jax.lax.cond(jnp.sum(x) == 12345.678, _tail, lambda x: x + 1, x), 8
    )
    executable, _ = cyxla.compile_program(unlikely)
    assert executable.route == "pjrt"
    assert re.fullmatch(
        r"(branch \d|the branch for (true|false)) of the conditional in step \d+( \(\S+\))?"
        r" (copies memory|has a (loop|conditional)) and was not reached by the inputs that compare"
        r" both routes",
        executable.route_reason,
    )
    with pytest.raises(cyxla.UnsupportedError, match="was not reached by the inputs"):
        cyxla.compile_program(unlikely, route="direct")
