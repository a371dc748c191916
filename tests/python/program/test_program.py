# SPDX-License-Identifier: Apache-2.0
"""A program's fields, its table, and the names of its leaves."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jaxlib._jax
import numpy as np
import pytest

from cyxla.dtypes import ElementType
from cyxla.errors import ArgumentError
from cyxla.lowering import jax_internals
from cyxla.lowering.lower import lower
from cyxla.program import Program, ProgramArray

S = jax.ShapeDtypeStruct


def names(program: Program) -> tuple[list[str], list[str]]:
    return [array.name for array in program.inputs], [array.name for array in program.outputs]


def identity(*arguments: Any) -> Any:
    return arguments


class Parameters(NamedTuple):
    w: list[Any]
    b: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    position: Any
    velocity: Any


def test_program_fields() -> None:
    def model(weights: Any, x: Any) -> Any:
        return {"loss": (weights @ x).sum(), "grad": x}

    program = lower(model, [S((2, 3), "f4"), S((3,), "f4")], platform="cpu")
    assert program.name == "model"
    assert program.platform == "cpu"
    assert program.inputs == (
        ProgramArray("weights", np.dtype("f4"), ElementType.F32, (2, 3), 24),
        ProgramArray("x", np.dtype("f4"), ElementType.F32, (3,), 12),
    )
    assert program.outputs == (
        ProgramArray("result['grad']", np.dtype("f4"), ElementType.F32, (3,), 12),
        ProgramArray("result['loss']", np.dtype("f4"), ElementType.F32, (), 4),
    )
    assert program.stablehlo[:4] == b"ML\xefR"
    assert program.stablehlo_version.count(".") == 2
    assert program.jax_version == jax.__version__
    assert program.custom_call_targets == ()
    assert program.needs_python is False
    assert program.flops == 13.0  # 12 of the product, 1 of the sum
    assert "module @model" in program.text
    assert "stablehlo.dot_general" in program.text
    assert "loc(" not in program.text


def test_program_is_small_in_print_and_immutable() -> None:
    large = np.ones(100_000, "f4")
    program = lower(lambda x: x + large, [S((100_000,), "f4")], name="add_large")
    assert repr(program) == (
        f"<cyxla.Program 'add_large' for cpu: 1 input, 1 output, {len(program.stablehlo)} bytes"
        f" of StableHLO {program.stablehlo_version}>"
    )
    assert ": 2 inputs, 0 outputs, " in repr(lower(lambda x, y: (), [large, large], platform="cpu"))
    assert len(str(program)) < 1000
    with pytest.raises(dataclasses.FrozenInstanceError):
        program.name = "other"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(program)) == program
    assert copy.deepcopy(program) == program


def test_signature_table() -> None:
    program = lower(
        lambda d: (d["a"], d["b"].sum()), [{"b": S((2, 0), "f8"), "a": S((), "bfloat16")}]
    )
    title, header, *rows = str(program).splitlines()
    assert title == (
        f"lambda for cpu, StableHLO {program.stablehlo_version}, JAX {jax.__version__}"
    )
    assert header.split("  ")[0] == ""
    assert [row.split() for row in rows] == [
        ["input", "0", "d['a']", "bfloat16", "BF16", "=", "13", "scalar", "1", "2"],
        ["input", "1", "d['b']", "float64", "F64", "=", "12", "2x0", "0", "0"],
        ["output", "0", "result[0]", "bfloat16", "BF16", "=", "13", "scalar", "1", "2"],
        ["output", "1", "result[1]", "float64", "F64", "=", "12", "scalar", "1", "8"],
    ]
    assert "custom calls: lapack_spotrf_ffi" in str(
        lower(jnp.linalg.cholesky, [S((2, 2), "f4")], platform="cpu")
    )


def test_a_transcendental_alone_counts_no_flops() -> None:
    assert lower(jnp.sin, [S((3,), "f4")]).flops is None


# Counting takes as long as lowering, so it is lazy.
def test_flops_are_counted_once_and_travel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    counted: list[bytes] = []

    def count(artifact: bytes) -> float:
        counted.append(artifact)
        return 7.0

    monkeypatch.setattr(jax_internals, "count_flops", count)
    program = lower(lambda x: x + 1, [S((3,), "f4")], platform="cpu")
    assert counted == []
    assert [program.flops, program.flops] == [7.0, 7.0]
    assert counted == [program.stablehlo]
    for travelled in (
        lambda program: pickle.loads(pickle.dumps(program)),
        copy.deepcopy,
        lambda program: _saved(program, tmp_path),
        lambda program: dataclasses.replace(program, name="other"),
    ):
        counted.clear()
        other = travelled(lower(lambda x: x + 1, [S((3,), "f4")], platform="cpu"))
        assert len(counted) == 1
        monkeypatch.setattr(jax_internals, "count_flops", None)  # as if jax were missing
        assert other.flops == 7.0
        monkeypatch.setattr(jax_internals, "count_flops", count)


def _saved(program: Program, folder: Path) -> Program:
    program.save(folder / "program.cyxla")
    return Program.load(folder / "program.cyxla")


def test_flops_that_cannot_be_counted_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxlib._jax, "hlo_module_cost_analysis", None)
    program = lower(lambda x: x + 1, [S((3,), "f4")], platform="cpu")
    assert program.flops is None
    monkeypatch.undo()
    assert program.flops is None  # cached from then on
    assert dataclasses.replace(program, flops=2.0).flops == 2.0


# Names of the leaves.


@pytest.mark.parametrize(
    ("function", "arguments", "inputs"),
    [
        (lambda x, y: x, [S((), "f4"), S((), "f4")], ["x", "y"]),
        (lambda x, *rest: x, [S((), "f4")] * 3, ["x", "rest[0]", "rest[1]"]),
        (lambda x, /, y=3: x, [S((), "f4")], ["x"]),
        (jnp.sin, [S((), "f4")], ["x"]),
        (jax.jit(lambda a, b: b), [S((), "f4")] * 2, ["a", "b"]),
        (jax.grad(lambda w, x: w * x), [S((), "f4")] * 2, ["w", "x"]),
        (functools.partial(lambda a, b, c: b, 1.0, c=2.0), [S((), "f4")], ["b"]),
        (identity, [[S((), "f4"), (S((), "f4"),)]], ["arguments[0][0]", "arguments[0][1][0]"]),
        (lambda p: p, [Parameters([S((), "f4")], S((), "f4"))], ["p.w[0]", "p.b"]),
        (lambda s: s, [State(S((), "f4"), S((), "f4"))], ["s.position", "s.velocity"]),
        (lambda d: d, [{"b": S((), "f4"), "a": S((), "f4")}], ["d['a']", "d['b']"]),
        (lambda d: d, [{1: S((), "f4"), 0: S((), "f4")}], ["d[0]", "d[1]"]),
        (lambda d: d, [{(2, "x"): S((), "f4")}], ["d[(2, 'x')]"]),
        (lambda d, x: x, [None, S((), "f4")], ["x"]),
        (lambda d: jnp.ones(3), [{}], []),
        (lambda: jnp.ones(3), [], []),
    ],
)
def test_input_names(function: Callable[..., Any], arguments: list[Any], inputs: list[str]) -> None:
    assert names(lower(function, arguments))[0] == inputs


def test_names_without_a_signature() -> None:
    class Opaque:
        __signature__ = "none"

        def __call__(self, x: Any, y: Any) -> Any:
            return x + y

    assert names(lower(Opaque(), [S((), "f4")] * 2))[0] == ["arg0", "arg1"]


@pytest.mark.parametrize(
    ("function", "outputs"),
    [
        (lambda x: x, ["result"]),
        (lambda x: [x], ["result[0]"]),
        (lambda x: (x, None, {"k": x}, 3), ["result[0]", "result[2]['k']", "result[3]"]),
        (lambda x: Parameters([x], x), ["result.w[0]", "result.b"]),
        (lambda x: (), []),
        (lambda x: None, []),
    ],
)
def test_output_names(function: Callable[..., Any], outputs: list[str]) -> None:
    assert names(lower(function, [S((2,), "f4")]))[1] == outputs


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x, "lambda"),
        (jnp.sin, "sin"),
        (jax.jit(identity), "identity"),
        (functools.partial(functools.partial(identity)), "identity"),
        (Parameters([1], 2).count, "count"),
    ],
)
def test_default_name(function: Callable[..., Any], name: str) -> None:
    arguments = [] if name == "count" else [S((), "f4")]
    if name == "count":
        function = functools.partial(function, 3)
    assert lower(function, arguments).name == name


def test_given_name() -> None:
    program = lower(identity, [S((), "f4")], name='2 "odd" ü')
    assert program.name == '2 "odd" ü'
    assert "module @_2_odd " in program.text
    for name in ("", 3):
        with pytest.raises(ArgumentError, match="name must be a non-empty string"):
            lower(identity, [S((), "f4")], name=name)  # type: ignore[arg-type]
