# SPDX-License-Identifier: Apache-2.0
"""Attributes of an Executable, its warnings, `bind`, and errors for wrong uses."""

from __future__ import annotations

import gc
import inspect
import warnings
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from cyxla import _runtime
from cyxla.errors import ArgumentError
from support.arrays import build, place


def test_statistics_are_kept_and_read_only() -> None:
    executable = build(lambda x: 2 * x, ((3,), "f8"))
    statistics = cyxla.CompileStatistics(1.5, 2, None, None, 24, None, None, None)
    _runtime.set_statistics(executable, statistics)
    assert executable.statistics is statistics
    with pytest.raises(AttributeError):
        cast("Any", executable).statistics = None
    with pytest.raises(TypeError, match="Executable"):
        _runtime.set_statistics(cast("Any", None), statistics)


class _Foreign:
    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return np.ones(3)


@pytest.mark.parametrize(
    ("given", "name", "target"),
    [
        (lambda: np.ones(3), "float64", "f4"),
        (lambda: np.ones(6)[::2], "float64", "f4"),
        (lambda: np.ones(3, ">f8"), "float64", "f4"),
        (lambda: memoryview(np.ones(3)), "float64", "f4"),
        (_Foreign, "float64", "f4"),
        (lambda: np.ones(3), "float64", "f2"),
        (lambda: np.ones(3), "float64", "bfloat16"),
        (lambda: np.ones(3), "float64", "c8"),
        (lambda: np.ones(3, "c16"), "complex128", "c8"),
        (lambda: np.arange(3), "int64", "f4"),
        (lambda: np.arange(3, dtype="u8"), "uint64", "f4"),
    ],
)
def test_narrowing_an_array_warns_once(given: Callable[[], Any], name: str, target: str) -> None:
    executable = build(lambda p: p, ((3,), target))
    declared = np.dtype(target).name
    with pytest.warns(cyxla.NarrowingWarning) as caught:
        executable.run([given()])
    assert str(caught[0].message) == (
        f"argument 0 ('p'): a {name} array is narrowed to {declared}, which the program declares,"
        f" so numbers may change; lower it for {name} (jax.ShapeDtypeStruct(shape, np.{name}), or"
        f" np.ones(3) instead of jnp.ones(3)), or pass .astype(np.{declared}). This program warns"
        " once"
    )
    assert caught[0].filename == __file__
    assert caught[0].lineno == _line_of(test_narrowing_an_array_warns_once, "executable.run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executable.run([given()])


def _line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_narrowing_a_numpy_scalar_warns_and_may_be_an_error() -> None:
    executable = build(lambda p: p, ((), "f4"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(cyxla.NarrowingWarning, match=r"argument 0 \('p'\): a float64"):
            executable.run([np.float64(0.5)])
        assert executable.run([np.float64(0.5)])[0] == 0.5


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (0.1, "f4"),
        (2**40 + 1, "f4"),
        (1j, "c8"),
        ([0.1, 0.2, 0.3], "f4"),
        ((1, 2, 3), "bfloat16"),
        (np.ones(3, "f4"), "f2"),
        (np.arange(3), "i4"),
        (np.arange(3), "i1"),
        (np.arange(3, dtype="i4"), "f4"),
        (np.arange(3), "f8"),
        (np.ones(3), "c16"),
        (jnp.ones(3), "f4"),
    ],
)
def test_cases_without_a_warning(value: Any, target: str) -> None:
    executable = build(lambda p: p, (np.shape(value), target))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executable.run([value])


def test_a_pytree_as_an_argument() -> None:
    double = build(lambda x: 2 * x, ((3,), "f8"))
    remedy = r"executable\.run\(jax\.tree\.leaves\(arguments\)\)$"
    for tree in ({"x": np.ones(3)}, [{"x": 1.0}], object(), (np.ones(3), 0.0), {1.0}):
        with pytest.raises(ArgumentError, match=rf"argument 0 \('x'\): .*{remedy}"):
            double.run([tree])
    with pytest.raises(ArgumentError, match=r"NoneType holds no numbers$"):
        double.run([None])


def test_an_executable_is_not_called() -> None:
    double: Any = build(lambda x: 2 * x, ((3,), "f8"))
    for call in (lambda: double(np.ones(3)), double, lambda: double(x=1)):
        with pytest.raises(TypeError, match=r"pass its arguments in a list: executable\.run\(\[x"):
            call()


def test_a_bound_call_takes_no_arguments() -> None:
    x = np.ones(3)
    call: Any = build(lambda x: 2 * x, ((3,), "f8")).bind([x])
    with pytest.raises(TypeError, match=r"write into the arrays it is bound to .*run\(\[x\]\)"):
        call(x)
    with pytest.raises(TypeError, match="keyword"):
        call(x=x)
    assert call()[0].tolist() == [2, 2, 2]


_ROUTES = [{"route": "direct"}, {"route": "pjrt"}, {"outputs_in_place": True}]


def _build(function: Any, options: dict[str, Any], *types: Any) -> cyxla.Executable:
    specs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]
    return cyxla.compile_program(cyxla.lower(function, specs), **options)[0]


@pytest.mark.parametrize("options", _ROUTES, ids=str)
@pytest.mark.parametrize("offset", [0, 8])
@pytest.mark.parametrize("shift", [0, 3, -2])
def test_bound_outputs_may_overlap_inputs(options: dict[str, Any], offset: int, shift: int) -> None:
    def function(x: Any, y: Any) -> Any:
        return jnp.cumsum(x)[::-1] + y, x - jnp.roll(y, 1), y

    types = [((40,), "f8")] * 2
    executable = _build(function, options, *types)
    memory = place(np.zeros(140), offset)
    x, y = memory[8:48], memory[51:91]
    outputs = [memory[8 + shift : 48 + shift], memory[51 + shift : 91 + shift], memory[94:134]]
    call = executable.bind([x, y], outputs)
    memory[:] = np.random.default_rng(0).uniform(size=140)
    for _ in range(4):  # the results are the next inputs
        wanted = [result.tobytes() for result in executable.run([x.copy(), y.copy()])]
        results = call()
        assert all(got is out for got, out in zip(results, outputs, strict=True))
        assert [result.tobytes() for result in results] == wanted


@pytest.mark.parametrize("options", _ROUTES, ids=str)
def test_fresh_results_are_new_arrays(options: dict[str, Any]) -> None:
    executable = _build(lambda x: (2 * x, x.sum()), options, ((3,), "f8"))
    x = place(np.arange(3.0))
    call = executable.bind([x], fresh=True)
    assert call.outputs is None
    kept = []
    for i in range(50):
        x[:] = i
        kept.append(call())
    assert [(double.tolist(), float(total)) for double, total in kept] == [
        ([2 * i] * 3, 3 * i) for i in range(50)
    ]
    same = executable.bind([x])
    assert same() is same() is same.outputs


def test_fresh_takes_no_outputs() -> None:
    double = build(lambda x: 2 * x, ((3,), "f8"))
    with pytest.raises(ArgumentError, match=r"outputs must be None with fresh=True"):
        double.bind([np.ones(3)], [np.ones(3)], fresh=True)


def test_a_fresh_call_keeps_its_executable_and_inputs() -> None:
    call = build(lambda x: 2 * x, ((3,), "f8")).bind([np.ones(3)], fresh=True)
    gc.collect()
    assert call()[0].tolist() == [2, 2, 2]
