# SPDX-License-Identifier: Apache-2.0
"""Programs that call Python: results, threads, and how errors propagate."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import cyxla
from cpu_plugins import CPU_LIBRARIES, run_with_plugin
from cyxla.program import host_callbacks

S = jax.ShapeDtypeStruct
VECTOR = S((2,), "f4")


def build(function: Callable[..., Any], *shapes: Any, **options: Any) -> cyxla.Executable:
    return cyxla.compile_program(cyxla.lower(function, list(shapes)), **options)[0]


def doubled(x: Any) -> Any:
    return jax.pure_callback(lambda a: np.asarray(a) * 2, VECTOR, x) + 1


def raises(x: Any) -> Any:
    def positive(a: Any) -> Any:
        if a[0] < 0:
            raise ValueError("not pösitive")
        return np.asarray(a)

    return jax.pure_callback(positive, VECTOR, x)


ALL_KINDS = """
    import threading
    import jax, jax.numpy as jnp, numpy as np, cyxla
    from jax.experimental import io_callback
    from support.threads import run_all

    S = jax.ShapeDtypeStruct
    vector = S((2,), "f4")
    seen = []

    def build(function, *shapes):
        return cyxla.compile_program(cyxla.lower(function, list(shapes)))[0]

    def every(x):
        jax.debug.print("x = {x}", x=x, ordered=True)
        y = io_callback(lambda a: np.asarray(a) * 2, vector, x, ordered=True)

        def step(c, _):
            jax.debug.callback(lambda a: seen.append(float(a[0])), c, ordered=True)
            return c + 1, None

        y, _ = jax.lax.scan(step, y, None, length=3)
        y = jax.lax.cond(y[0] > 0, lambda a: jax.pure_callback(np.sin, vector, a), jnp.cos, y)
        jax.debug.callback(lambda a: seen.append("unordered"), y)
        return y

    x = np.array([1, 2], "f4")
    np.testing.assert_allclose(build(every, vector).run([x])[0], np.sin(2 * x + 3), rtol=1e-6)
    assert [s for s in seen if s != "unordered"] == [2, 3, 4], seen
    assert "unordered" in seen

    for method in ("sequential", "expand_dims"):
        def cosine(v, method=method):
            return jax.pure_callback(np.cos, S((), "f4"), v, vmap_method=method)
        got = build(jax.vmap(cosine), vector).run([x])[0]
        np.testing.assert_allclose(got, np.cos(x), rtol=1e-6)

    @jax.custom_vjp
    def sine(v):
        return jax.pure_callback(np.sin, S((), "f4"), v)
    sine.defvjp(lambda v: (sine(v), v),
                lambda v, g: (g * jax.pure_callback(np.cos, S((), "f4"), v),))
    (slope,) = build(jax.grad(sine), S((), "f4")).run([np.float32(0.5)])
    assert abs(slope - np.cos(0.5)) < 1e-6

    kinds = [np.bool_, np.int8, np.uint16, np.int32, np.float16, jnp.bfloat16, np.complex64]
    shapes = [S((2, 3), k) for k in kinds] + [S((), "f4"), S((0, 4), "f4")]
    def back(*arrays):
        return tuple(np.asarray(a) for a in arrays)
    many = build(lambda *v: jax.pure_callback(back, tuple(shapes), *v), *shapes)
    arrays = [np.arange(s.size).reshape(s.shape).astype(s.dtype) for s in shapes]
    for given, got in zip(arrays, many.run(arrays), strict=True):
        assert given.dtype == got.dtype
        np.testing.assert_array_equal(given, got)

    def fails(a):
        raise ValueError("boom " + "x" * 3000)
    bad = build(lambda v: jax.pure_callback(fails, vector, v), vector)
    for _ in range(2):
        try:
            bad.run([x])
        except cyxla.ExecutionError as error:
            assert "ValueError in the host callback pure_callback at" in str(error), str(error)
            assert "boom xxx" in str(error) and type(error.__cause__) is ValueError
        else:
            raise AssertionError("no error")
    np.testing.assert_allclose(build(every, vector).run([x])[0], np.sin(2 * x + 3), rtol=1e-6)

    main = threading.get_ident()
    where = set()
    def note(a):
        where.add(threading.get_ident())
        return np.asarray(a)
    def heavy(v, m):
        m = jax.lax.fori_loop(0, 4, lambda _, a: jnp.tanh(a @ a), m)
        return jax.pure_callback(note, vector, v + 0 * m[0, :2])
    called = build(heavy, vector, S((300, 300), "f4"))
    m = np.eye(300, dtype="f4")
    def work():
        for i in range(5):
            v = np.full(2, i, "f4")
            np.testing.assert_array_equal(called.run([v, m])[0], v)
    run_all(*[work] * 4)

    # On the plugin's threads another program runs or is refused; nothing hangs.
    other = build(lambda v: jax.pure_callback(lambda a: np.asarray(a) + 1, vector, v), vector)
    def nested(a):
        return other.run([np.asarray(a)])[0]
    def heavier(v, m):
        m = jax.lax.fori_loop(0, 4, lambda _, a: jnp.tanh(a @ a), m)
        return jax.pure_callback(nested, vector, v + 0 * m[0, :2])
    nest = build(heavier, vector, S((300, 300), "f4"))
    def work():
        for i in range(3):
            try:
                (got,) = nest.run([np.full(2, i, "f4"), m])
                np.testing.assert_array_equal(got, [i + 1, i + 1])
            except cyxla.ExecutionError as error:
                assert "from within a host callback" in str(error), str(error)
                assert type(error.__cause__) is cyxla.UnsupportedError
            ended.append(i)
    ended = []
    run_all(*[work] * 3)
    assert len(ended) == 9, ended
    print("well", len(where) > 0)
"""


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_every_kind_of_callback(library: str) -> None:
    assert run_with_plugin(library, ALL_KINDS).splitlines()[-1] == "well True"


AT_EXIT = """
    import threading, time
    import cyxla
    EARLY
    import jax, numpy as np

    started = threading.Event()
    def slow(a):
        started.set()
        time.sleep(0.3)
        jax.numpy.sin(a).block_until_ready()
        print("finished", flush=True)
        return np.asarray(a)

    vector = jax.ShapeDtypeStruct((2,), "f4")
    program = cyxla.lower(lambda x: jax.pure_callback(slow, vector, x), [vector])
    executable = cyxla.compile_program(program)[0]
    call = lambda: executable.run([np.zeros(2, "f4")])
    threading.Thread(target=call, daemon=True).start()
    assert started.wait(60)
"""


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_a_callback_in_flight_at_exit_finishes(library: str) -> None:
    for early in ("", "cyxla.initialize()"):
        assert run_with_plugin(library, AT_EXIT.replace("EARLY", early)) == "finished\n"


def test_program_and_spec_say_that_python_is_needed() -> None:
    program = cyxla.lower(doubled, [VECTOR])
    assert program.needs_python
    assert "xla_ffi_python_cpu_callback" in program.custom_call_targets
    executable = build(doubled, VECTOR)
    assert executable.route == "pjrt"
    assert executable.route_reason == "it calls back into Python"
    with pytest.raises(cyxla.UnsupportedError, match="it calls back into Python"):
        build(doubled, VECTOR, route="direct")
    assert not cyxla.lower(jnp.sin, [VECTOR]).needs_python


def test_main_has_no_tokens() -> None:
    def ordered(x: Any) -> Any:
        jax.debug.print("{}", x, ordered=True)
        return io_callback(np.sin, VECTOR, x, ordered=True)

    program = cyxla.lower(ordered, [VECTOR])
    (main,) = (line for line in program.text.splitlines() if "@main" in line)
    assert "token" not in main
    assert [array.shape for array in program.inputs] == [(2,)]
    assert [array.shape for array in program.outputs] == [(2,)]
    assert "sdy.sharding" not in program.text


def test_error_of_bound_and_warm_up_calls() -> None:
    executable = build(raises, VECTOR)
    x = np.ones(2, "f4")
    bound = executable.bind([x])
    x[:] = -1
    for call in (bound, lambda: executable.warm_up([x])):
        with pytest.raises(cyxla.ExecutionError, match="ValueError in the host callback") as caught:
            call()
        assert "#" not in str(caught.value)
        assert isinstance(caught.value.__cause__, ValueError)
        assert str(caught.value.__cause__) == "not pösitive"
        assert caught.value.__cause__.__traceback__ is not None
    x[:] = 3
    np.testing.assert_array_equal(bound()[0], [3, 3])


class Silent(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_the_text_of_an_error_may_fail() -> None:
    def fails(_: Any) -> Any:
        raise Silent

    executable = build(lambda x: jax.pure_callback(fails, VECTOR, x), VECTOR)
    with pytest.raises(cyxla.ExecutionError, match=r"Silent in the host callback pure_") as caught:
        executable.run([np.ones(2, "f4")])
    assert str(caught.value).endswith("(its __str__ raised ValueError)")
    assert type(caught.value.__cause__) is Silent


def test_the_error_log_has_the_plain_text() -> None:
    executable = build(raises, VECTOR)
    with pytest.raises(cyxla.ExecutionError) as caught:
        executable.run([np.full(2, -1, "f4")])
    message = cyxla.error_info().message
    assert message == str(caught.value)
    assert "#" not in message
    assert message.isprintable()


def test_a_bound_call_from_its_own_callback_is_refused_as_that() -> None:
    def again(_: Any) -> Any:
        return bound()[0]

    bound = build(lambda x: jax.pure_callback(again, VECTOR, x), VECTOR).bind([np.ones(2, "f4")])
    with pytest.raises(cyxla.ExecutionError, match="or called again from its own host callback"):
        bound()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupts_fail_the_execution(kind: type[BaseException]) -> None:
    def stop(_: Any) -> Any:
        raise kind

    executable = build(lambda x: jax.pure_callback(stop, VECTOR, x), VECTOR)
    with pytest.raises(cyxla.ExecutionError, match=kind.__name__) as caught:
        executable.run([np.ones(2, "f4")])
    assert isinstance(caught.value.__cause__, kind)


def test_wrong_results_are_errors() -> None:
    executable = build(lambda x: jax.pure_callback(lambda a: a[:1], VECTOR, x), VECTOR)
    with pytest.raises(cyxla.ExecutionError, match=r"(?i)shape.*\(2,\).*\(1,\)"):
        executable.run([np.ones(2, "f4")])


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "tuple of 1 array, not list"),
        ((1, 2), "tuple of 1 array, not 2"),
        ((np.zeros(2, "f8"),), "result 0 must be float32 of shape"),
        ((np.zeros((1, 2), "f4"),), "not float32 of shape"),
    ],
)
def test_results_of_every_function_are_checked(results: Any, message: str) -> None:
    callback = host_callbacks.HostCallback(lambda: results, "here")
    failure = host_callbacks.answer(callback.number, (), ((np.dtype("f4"), (2,)),))
    assert isinstance(failure, host_callbacks.Failure)
    assert message in failure.text
    assert "TypeError in the host callback here" in failure.text


def test_a_function_that_is_gone_is_an_error() -> None:
    failure = host_callbacks.answer(2**60, (), ())
    assert isinstance(failure, host_callbacks.Failure)
    assert "lower it again" in failure.text


def test_arguments_are_copies_that_cannot_be_written() -> None:
    kept: list[Any] = []
    executable = build(lambda x: io_callback(lambda a: kept.append(a) or None, None, x + 1), VECTOR)
    for i in range(3):
        executable.run([np.full(2, i, "f4")])
    assert [float(array[0]) for array in kept] == [1, 2, 3]


def test_wide_dtypes_without_the_flag() -> None:
    wide = S((2,), "f8")
    executable = build(lambda x: jax.pure_callback(lambda a: np.asarray(a) + 1e-12, wide, x), wide)
    assert not jax.config.jax_enable_x64
    assert executable.run([np.ones(2)])[0][0] != 1


def test_called_while_jax_traces() -> None:
    executable = build(doubled, VECTOR)
    got: list[Any] = []

    def traced(y: Any) -> Any:
        got.append(executable.run([np.ones(2, "f4")])[0])
        return y + 1

    assert jax.jit(traced)(1.0) == 2
    np.testing.assert_array_equal(got[0], [3, 3])


def test_callbacks_may_execute_programs() -> None:
    other = build(doubled, VECTOR)
    direct = build(jnp.tanh, VECTOR)

    def descend(a: Any) -> Any:
        a = np.asarray(a)
        if a[0] > 0:
            return again.run([a - 1])[0]
        return other.run([a])[0] + np.asarray(jax.jit(jnp.cos)(a)) + direct.run([a])[0]

    again = build(lambda x: jax.pure_callback(descend, VECTOR, x) * 2, VECTOR)
    np.testing.assert_array_equal(again.run([np.full(2, 3, "f4")])[0], [32, 32])
    bound = again.bind([np.zeros(2, "f4")])
    np.testing.assert_array_equal(bound()[0], [4, 4])


def test_lowering_binds_the_targets_of_the_handlers() -> None:
    from cyxla import _runtime
    from cyxla.lowering import callbacks

    assert set(_runtime.host_callback_handlers()) == callbacks.TARGETS


def test_programs_with_callbacks_compile_in_parallel() -> None:
    def times(k: int) -> cyxla.Program:
        return cyxla.lower(
            lambda x: jax.pure_callback(lambda a: np.asarray(a) * k, VECTOR, x), [VECTOR]
        )

    compiled = cyxla.compile_programs([times(k) for k in range(4)])
    results = [executable.run([np.ones(2, "f4")])[0][0] for executable, _ in compiled]
    assert results == [0, 1, 2, 3]


def test_a_program_with_callbacks_stays_in_its_process() -> None:
    program = cyxla.lower(doubled, [VECTOR])
    with pytest.raises(cyxla.UnsupportedError, match=r"pure_callback at .*cannot be saved or pick"):
        pickle.dumps(program)
    with pytest.raises(cyxla.UnsupportedError, match="lower the function in the process"):
        program.check_portable()
    cyxla.lower(jnp.sin, [VECTOR]).check_portable()
    for duplicate in (copy.copy(program), copy.deepcopy(program)):
        executable = cyxla.compile_program(duplicate)[0]
        np.testing.assert_array_equal(executable.run([np.ones(2, "f4")])[0], [3, 3])


def settled() -> int:
    gc.collect()
    return host_callbacks.known_callbacks()


def test_functions_go_with_the_last_that_needs_them() -> None:
    before = settled()
    program = cyxla.lower(doubled, [VECTOR])
    executable = cyxla.compile_program(program)[0]
    assert settled() == before + 1
    del program
    assert settled() == before + 1
    bound = executable.bind([np.ones(2, "f4")])
    del executable
    np.testing.assert_array_equal(bound()[0], [3, 3])
    del bound
    assert settled() == before


def test_nothing_stays_of_many_compilations_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest keeps JAX's log records of the failures, which keep the functions.
    monkeypatch.setattr(logging.getLogger("jax._src.callback"), "disabled", True)
    before = settled()
    program = cyxla.lower(raises, [VECTOR])
    for _ in range(200):
        cyxla.compile_program(program)
    executable = cyxla.compile_program(program)[0]
    for _ in range(20):
        with pytest.raises(cyxla.ExecutionError):
            executable.run([np.full(2, -1, "f4")])
    del program, executable
    for _ in range(20):
        cyxla.lower(doubled, [VECTOR])
    assert settled() == before


def test_an_executable_dropped_during_its_callback() -> None:
    before = settled()
    inside, go_on = threading.Event(), threading.Event()
    results: list[Any] = []

    def start() -> threading.Thread:
        def wait(a: Any) -> Any:
            inside.set()
            assert go_on.wait(60)
            return np.asarray(a)

        run = build(lambda x: jax.pure_callback(wait, VECTOR, x), VECTOR).run
        return threading.Thread(target=lambda: results.append(run([np.ones(2, "f4")])))

    thread = start()
    thread.start()
    assert inside.wait(60)
    gc.collect()
    go_on.set()
    thread.join()
    del thread
    np.testing.assert_array_equal(results[0][0], [1, 1])
    assert settled() == before
