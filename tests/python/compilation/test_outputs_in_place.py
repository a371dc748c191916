# SPDX-License-Identifier: Apache-2.0
"""`compile_program(outputs_in_place=True)`: equal results and an unchanged signature."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from cpu_plugins import CPU_LIBRARIES, run_with_plugin
from cyxla import _runtime, runtime
from cyxla.compilation.compile import compile_program
from cyxla.errors import ArgumentError, UnsupportedError
from cyxla.lowering import stablehlo
from cyxla.lowering.lower import lower
from cyxla.program import Program

S = jax.ShapeDtypeStruct


def several() -> Program:
    return lower(
        lambda x, y: {"sum": x + y, "empty": jnp.zeros((0, 2)), "mean": x.mean()},
        [S((3,), "f4"), S((3,), "f4")],
        platform="cpu",
        name="several",
    )


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_results_are_equal(library: str) -> None:
    output = run_with_plugin(
        library,
        """
        import jax, jax.numpy as jnp, numpy as np, cyxla
        S = jax.ShapeDtypeStruct
        programs = {
            "one output": (lambda x: jnp.sin(x) * 2, [S((3,), "f4")]),
            "large": (lambda x: (x @ x, jnp.sort(x)), [S((128, 128), "f4")]),
            "one value twice": (lambda x: (x + 1, x + 1), [S((3,), "f4")]),
            "an input": (lambda x, y: (x, y, x, x + y), [S((3,), "f4")] * 2),
            "constants": (lambda x: (jnp.ones(3), 3, jnp.arange(500.0), x), [S((3,), "f4")]),
            "no inputs": (lambda: jnp.arange(7), []),
            "empty": (lambda x: (jnp.zeros((0, 2)), x * 2, x[:0]), [S((3,), "f4")]),
            "only empty": (lambda x: x[:0], [S((3,), "f4")]),
            "scalars": (lambda x: (x.sum(), x.argmax()), [S((3,), "f4")]),
            "bool": (lambda x: x > 0, [S((3,), "f4")]),
            "bfloat16": (lambda x: (x * 2, x), [S((3,), "bfloat16")]),
            "complex": (lambda x: (x * 2, x.real), [S((3,), "c8")]),
            "float64": (lambda x: (jnp.tanh(x), x.sum()), [S((40,), "f8")]),
            "loop": (lambda x: jax.lax.fori_loop(0, 9, lambda i, v: v * 2 - i, x), [S((5,), "f4")]),
            "other dialect": (lambda x: (jax.lax.top_k(x, 2), jax.scipy.special.erf(x)),
                              [S((9,), "f4")]),
        }
        rng = np.random.default_rng(0)
        for name, (function, arguments) in programs.items():
            program = cyxla.lower(function, arguments, name=name)
            copied, statistics = cyxla.compile_program(program, exact=True)
            in_place, statistics_in_place = cyxla.compile_program(program, outputs_in_place=True)
            assert in_place.input_types == copied.input_types, name
            assert in_place.output_types == copied.output_types, name
            assert statistics_in_place.argument_bytes == statistics.argument_bytes, name
            for _ in range(3):
                arrays = [rng.normal(size=a.shape).astype(a.dtype) for a in arguments]
                out = [cyxla.aligned_empty(t.shape, t.dtype) for t in copied.output_types]
                wanted = copied.run(arrays)
                for results in (in_place.run(arrays), in_place.run(arrays, out)):
                    for got, value in zip(results, wanted, strict=True):
                        assert got.dtype == value.dtype and got.shape == value.shape, name
                        assert got.tobytes() == value.tobytes(), (name, got, value)
        print(len(programs), cyxla.runtime_info().inplace_outputs)
        """,
    )
    assert output.split() == ["15", "True"]


def test_a_custom_call() -> None:
    program = lower(lambda x: (jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(3)), x), [S((3, 3), "f4")])
    x = np.random.default_rng(0).normal(size=(3, 3)).astype("f4")
    copied, in_place = (
        compile_program(program, outputs_in_place=asked)[0] for asked in (False, True)
    )
    for got, wanted in zip(in_place.run([x]), copied.run([x]), strict=True):
        assert got.tobytes() == wanted.tobytes()


def test_the_parameters_that_are_added() -> None:
    program = several()
    assert [array.name for array in program.outputs] == [
        "result['empty']",
        "result['mean']",
        "result['sum']",
    ]
    given, destinations = stablehlo.with_destinations(program)
    assert destinations == (1, 2)
    assert (given.inputs, given.outputs) == (program.inputs, program.outputs)
    (line,) = (line for line in given.text.splitlines() if "func.func public @main" in line)
    parameters = line.split("->")[0]
    assert parameters.endswith(
        "%arg2: tensor<f32> {tf.aliasing_output = 1 : i32},"
        " %arg3: tensor<3xf32> {tf.aliasing_output = 2 : i32}) "
    )
    assert "aliasing" not in program.text
    assert given.stablehlo_version == program.stablehlo_version


def test_the_text_has_the_parameters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # If the plugin's version lacks an operation, cyxla passes the program as text.
    program = lower(lambda x: (x.astype("float8_e4m3"), x * 2), [S((3,), "f4")], platform="cpu")
    older = runtime.runtime_info()._replace(stablehlo_version="1.0.0")
    monkeypatch.setattr(runtime, "runtime_info", lambda: older)
    executable, statistics = compile_program(program, outputs_in_place=True)
    given, _ = stablehlo.with_destinations(program)
    assert statistics.program_bytes == len(given.text)
    narrow, twice = executable.run([np.float32([1, 2, 3])])
    assert narrow.astype("f4").tolist() == [1, 2, 3]
    assert twice.tolist() == [2, 4, 6]


def test_a_plugin_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    info = runtime.runtime_info()._replace(inplace_outputs=False)
    monkeypatch.setattr(runtime, "runtime_info", lambda: info)
    message = rf"{info.plugin.path} .* cannot write outputs in place, so results are copied"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        executable, statistics = compile_program(several(), outputs_in_place=True)
    assert [warning.filename for warning in caught] == [__file__]
    assert statistics.program_bytes == compile_program(several())[1].program_bytes
    _, mean, total = executable.run([np.float32([1, 2, 3]), np.float32([1, 1, 1])])
    assert (mean, total.tolist()) == (2, [2, 3, 4])


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    program = several()
    monkeypatch.setitem(sys.modules, "cyxla.lowering.stablehlo", None)
    monkeypatch.delattr(cyxla.lowering, "stablehlo", raising=False)
    with pytest.raises(UnsupportedError) as caught:
        compile_program(program, outputs_in_place=True)
    assert (
        "outputs_in_place=True needs jax, to edit program 'several': pip install 'jax>=0.10.2' ("
    ) in str(caught.value)
    compile_program(program)  # needs none


def test_a_program_that_jaxlib_cannot_read(capfd: pytest.CaptureFixture[str]) -> None:
    program = dataclasses.replace(several(), stablehlo=b"ML\xefRjunk")
    message = r"program 'several' of StableHLO .* cannot be given destinations for its outputs: "
    with pytest.raises(UnsupportedError, match=message):
        compile_program(program, outputs_in_place=True)
    assert capfd.readouterr().err == ""


def test_no_bool() -> None:
    wrong: Any = 1
    with pytest.raises(ArgumentError, match="outputs_in_place must be a bool, got 1"):
        compile_program(several(), outputs_in_place=wrong)


def test_argument_bytes_may_be_unknown() -> None:
    measured = _runtime.Measured(*[None] * len(_runtime.Measured._fields))
    assert cyxla.CompileStatistics.of(measured, several(), (1, 2)).argument_bytes is None


def test_an_array_may_be_input_and_output() -> None:
    function = lambda x: (x[::-1] * 2, x + 1)  # noqa: E731
    executable, _ = compile_program(
        lower(function, [S((8192,), "f8")], platform="cpu"), outputs_in_place=True
    )
    x = cyxla.aligned_empty(8192, "f8")
    for _ in range(3):
        x[...] = np.arange(8192)
        second = cyxla.aligned_empty(8192, "f8")
        executable.run([x], out=[x, second])
        np.testing.assert_array_equal(x, np.arange(8192)[::-1] * 2)
        np.testing.assert_array_equal(second, np.arange(8192) + 1)
