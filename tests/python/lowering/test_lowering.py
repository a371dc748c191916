# SPDX-License-Identifier: Apache-2.0
"""`lower`: its arguments, functions and platforms, and its lack of side effects."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import cyxla
from child_process import run_code
from cyxla import runtime
from cyxla.errors import ArgumentError, LoweringError, PluginError
from cyxla.lowering import lower
from cyxla.plugins import discovery
from cyxla.program import Program, ProgramArray
from support.threads import run_all

S = jax.ShapeDtypeStruct
lower_module = importlib.import_module("cyxla.lowering.lower")  # the package has the function


def identity(*arguments: Any) -> Any:
    return arguments


# Arguments.


def test_arrays_stand_for_their_shape_and_dtype() -> None:
    program = lower(
        identity,
        [np.zeros((2, 1)), jnp.zeros(3), np.float32(1), np.zeros(2, ">f4"), np.bool_(True)],
    )
    assert [(array.dtype.str, array.shape) for array in program.inputs] == [
        ("<f8", (2, 1)),
        ("<f4", (3,)),
        ("<f4", ()),
        ("<f4", (2,)),
        ("|b1", ()),
    ]


@pytest.mark.parametrize("x64", [False, True])
def test_python_scalars_have_the_dtypes_of_jit(x64: bool) -> None:
    program = lower(identity, [True, 1, 2.0, 3j], x64=x64)
    with jax.enable_x64(x64):
        expected = [leaf.dtype for leaf in jax.eval_shape(identity, True, 1, 2.0, 3j)]
    assert [array.dtype for array in program.inputs] == expected
    half = lower(lambda x, scale: x * scale, [S((2,), "bfloat16"), 2.0])
    assert half.outputs[0].dtype == ml_dtypes.bfloat16  # weak, as in jit


@pytest.mark.parametrize(
    ("arguments", "given"),
    [(S((3,), "f4"), "ShapeDtypeStruct"), ({"x": 1.0}, "dict"), (np.ones(3), "ndarray")],
)
def test_bare_argument(arguments: Any, given: str) -> None:
    with pytest.raises(ArgumentError, match=rf"got {given}; write lower\(function, \[argument\]\)"):
        lower(jnp.sin, arguments)


@pytest.mark.parametrize(
    ("argument", "message", "remedy"),
    [
        (
            "text",
            r"argument 1 \('p'\): expected a jax.ShapeDtypeStruct or an array, got str",
            "functools.partial",
        ),
        (
            {"k": jnp.float32},
            r"argument 1 \(\"p\['k'\]\"\): expected .* got the type float32",
            "jax.ShapeDtypeStruct(shape, float32)",
        ),
    ],
)
def test_arguments_that_are_not_arrays(argument: Any, message: str, remedy: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        lower(lambda x, p: x, [S((), "f4"), argument])
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (S((3,), jnp.int4), ["int4", "smaller than a byte"]),
        (S((3,), jnp.uint2), ["uint2", "smaller than a byte"]),
        (S((3,), jnp.float4_e2m1fn), ["float4_e2m1fn", "smaller than a byte"]),
        (S((3,), jax.dtypes.float0), ["float0"]),
        (np.array(["a"]), ["str32", "has no element type"]),
        (np.array([None]), ["object", "has no element type"]),
    ],
)
def test_dtypes_without_a_layout_are_refused_by_name(argument: Any, words: list[str]) -> None:
    with pytest.raises(LoweringError) as caught:
        lower(lambda x, p: x, [S((), "f4"), argument])
    for word in ("'lambda' cannot be lowered: argument 1 ('p'): ", *words):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: (x, x.astype(jnp.int4)), ["output 'result[1]'", "int4"]),
        (jax.grad(lambda x: x.sum() * 1.0, allow_int=True), ["output 'result'", "float0"]),
    ],
)
def test_outputs_without_a_layout_are_refused_by_name(function: Any, words: list[str]) -> None:
    with pytest.raises(LoweringError) as caught:
        lower(function, [S((3,), "i4")])
    for word in words:
        assert word in str(caught.value)


def test_small_integers_inside_the_function_are_fine() -> None:
    program = lower(lambda x: x.astype(jnp.int4).astype("i1"), [S((3,), "i1")])
    assert program.outputs[0].dtype == np.int8


# Functions.


class Model:
    weight = 3.0

    def __call__(self, x: Any) -> Any:
        return x * self.weight

    def method(self, x: Any) -> Any:
        return x * self.weight


@pytest.mark.parametrize(
    "function",
    [
        Model(),
        Model().method,
        jax.jit(Model().method),
        functools.partial(lambda n, x: x * n, 3),
        functools.partial(jax.jit(lambda x, n: x * n, static_argnums=1), n=3),
        functools.partial(jax.jit(lambda x, n: x * n, static_argnames="n"), n=3),
        jax.jit(functools.partial(lambda n, x: x * n, 3)),
        jax.vmap(lambda x: x * 3),
        jax.checkpoint(lambda x: x * 3),
        jax.grad(lambda x: (x * x).sum() * 1.5),
    ],
)
def test_kinds_of_callables(function: Callable[..., Any]) -> None:
    program = lower(function, [S((2,), "f4")])
    assert [array.shape for array in program.inputs + program.outputs] == [(2,), (2,)]
    assert "3.0" in program.text or "1.5" in program.text


def test_not_callable() -> None:
    with pytest.raises(ArgumentError, match="function must be callable, got int"):
        lower(3, [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "name must be a non-empty string, got ''"),
        (3, "name must be a non-empty string, got 3"),
        ("a\ud800", r"name 'a\\ud800' cannot be written in UTF-8: surrogates not allowed"),
    ],
)
def test_an_invalid_name(name: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        lower(jnp.sin, [S((3,), "f4")], name=name)
    assert lower(jnp.sin, [S((3,), "f4")], name="größe").name == "größe"


@pytest.mark.parametrize("x64", ["no", 1, 0.0])
def test_an_invalid_x64(x64: Any) -> None:
    with pytest.raises(ArgumentError, match="x64 must be True, False or None, got"):
        lower(lambda x: x, [S((2,), "f4")], x64=x64)


def raises(x: Any) -> Any:
    raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize(
    ("function", "arguments", "cause", "message"),
    [
        (raises, [S((), "f4")], ZeroDivisionError, "'raises' .*ZeroDivisionError: on purpose"),
        (lambda x, y: x, [S((), "f4")], TypeError, "missing 1 required positional.*'y'"),
        (lambda x: x, [S((), "f4")] * 2, TypeError, "takes 1 positional argument but 2"),
        (
            lambda x: x if x > 0 else -x,
            [S((), "f4")],
            jax.errors.TracerBoolConversionError,
            r"test_lowering\.py.*argument x",
        ),
        (lambda x: "text", [S((), "f4")], TypeError, "not a valid JAX type"),
        (lambda x: x, [{1: S((), "f4"), "a": S((), "f4")}], ValueError, "sorting pytree"),
        (jax.jit(lambda x, n: x, static_argnums=1), [S((), "f4"), 3], ValueError, "partial"),
        (lambda x: jax.lax.psum(x, "i"), [S((), "f4")], NameError, "unbound axis name: i"),
    ],
)
def test_the_exception_of_the_trace_is_the_cause(
    function: Any, arguments: list[Any], cause: type[Exception], message: str
) -> None:
    with pytest.raises(LoweringError, match=f"(?s){message}") as caught:
        lower(function, arguments)
    assert isinstance(caught.value.__cause__, cause)
    assert "cannot be lowered: " in str(caught.value)


# Platforms.


def test_every_platform_lowers_without_its_plugin() -> None:
    targets = {
        platform: lower(jnp.linalg.cholesky, [S((2, 2), "f4")], platform=platform)
        for platform in discovery.PLATFORM_PREFERENCE
    }
    assert targets["cpu"].custom_call_targets == ("lapack_spotrf_ffi",)
    assert targets["cuda"].platform == "cuda"
    assert targets["cuda"].custom_call_targets == ("cusolver_potrf_ffi",)


def test_unknown_platform() -> None:
    message = r"unknown platform 'nonsense' in the argument platform: known are .*cpu"
    with pytest.raises(PluginError, match=message):
        lower(jnp.sin, [S((), "f4")], platform="nonsense")


@pytest.fixture
def unsearched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process without a plugin, that has not searched for one; restored after the test."""
    monkeypatch.setattr(runtime, "current_platform", lambda: None)
    lower_module._found_platform.cache_clear()
    yield
    lower_module._found_platform.cache_clear()


@pytest.mark.usefixtures("unsearched")
def test_default_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_plugin() -> discovery.Plugin:
        raise PluginError("none installed")

    monkeypatch.setattr(discovery, "find_plugin", no_plugin)
    assert lower(jnp.sin, [S((), "f4")]).platform == "cpu"
    found = discovery.Plugin("tpu", Path("/nowhere"), "test")
    monkeypatch.setattr(discovery, "find_plugin", lambda: found)
    assert lower(jnp.sin, [S((), "f4")]).platform == "tpu"
    monkeypatch.setattr(runtime, "current_platform", lambda: "rocm")
    assert lower(jnp.sin, [S((), "f4")]).platform == "rocm"


@pytest.mark.usefixtures("unsearched")
def test_plugins_are_looked_for_once_for_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = []

    def find_plugin() -> discovery.Plugin:
        searches.append(os.environ.get("CYXLA_PLATFORM"))
        return discovery.Plugin(searches[-1] or "cpu", Path("/nowhere"), "test")

    monkeypatch.setattr(discovery, "find_plugin", find_plugin)
    monkeypatch.delenv("CYXLA_PLATFORM", raising=False)
    assert [lower(jnp.sin, [S((), "f4")]).platform for _ in range(3)] == ["cpu"] * 3
    monkeypatch.setenv("CYXLA_PLATFORM", "tpu")
    assert [lower(jnp.sin, [S((), "f4")]).platform for _ in range(2)] == ["tpu"] * 2
    monkeypatch.syspath_prepend("/nowhere")
    assert lower(jnp.sin, [S((), "f4")]).platform == "tpu"
    assert searches == [None, "tpu", "tpu"]
    for variable in ("CYXLA_PJRT_PLUGIN", "TPU_LIBRARY_PATH", "PJRT_NAMES_AND_LIBRARY_PATHS"):
        monkeypatch.setenv(variable, "/nowhere")
        assert lower(jnp.sin, [S((), "f4")]).platform == "tpu"
    assert searches == [None, *["tpu"] * 5]


def test_a_platform_of_an_installed_plugin_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = discovery.Plugin("other", Path("/nowhere"), "test")
    monkeypatch.setattr(discovery, "available_plugins", lambda: (found,))
    assert lower(jnp.sin, [S((), "f4")], platform="other").platform == "other"


# Side effects.


def test_jit_works_as_before() -> None:
    def function(x: Any) -> Any:
        return jax.scipy.special.erf(x) * 2

    jitted = jax.jit(function)
    x = jnp.linspace(0, 1, 4)
    lowered_before = jitted.lower(S((4,), "f4"))
    first = lower(jitted, [S((4,), "f4")], platform="cpu")
    second = lower(jitted, [S((4,), "f4")], platform="cpu")
    assert first == second
    lowered_after = jitted.trace(S((4,), "f4")).lower(lowering_platforms=("cpu",))
    expected = jax.scipy.special.erf(x) * 2
    np.testing.assert_allclose(jitted(x), expected, rtol=1e-6)
    for lowered in (lowered_before, lowered_after):
        np.testing.assert_allclose(lowered.compile()(x), expected, rtol=1e-6)
        assert "func.func public @main" in lowered.as_text()


def test_module_that_the_artifact_was_made_from_stays_whole() -> None:
    from cyxla.lowering import stablehlo

    lowered = jax.jit(lambda x: x + 1).lower(S((2,), "f4"))
    text = lowered.as_text()
    stablehlo.portable_artifact(lowered.compiler_ir("stablehlo"), "renamed")
    assert lowered.as_text() == text
    assert lowered.compile()(jnp.zeros(2)).tolist() == [1, 1]


def test_threads_lower_the_same_function_at_once() -> None:
    def function(x: Any) -> Any:
        return jnp.linalg.solve(x, x) + jax.scipy.special.erf(x)

    dtypes = ["f4", "f8"] * 4
    results: list[Program | None] = [None] * len(dtypes)
    start = threading.Barrier(len(dtypes))

    def work(index: int) -> None:
        start.wait(60)
        results[index] = lower(function, [S((3, 3), dtypes[index])], platform="cpu")

    run_all(*(functools.partial(work, index) for index in range(len(dtypes))))
    for dtype, program in zip(dtypes, results, strict=True):
        assert program is not None
        assert program == lower(function, [S((3, 3), dtype)], platform="cpu")
        assert program.inputs[0].dtype == np.dtype(dtype)


def test_nothing_is_kept_alive() -> None:
    class Weights:
        values = np.ones(1000, "f4")

    weights = Weights()
    gone = weakref.ref(weights)
    lower(functools.partial(lambda w, x: x + w.values, weights), [S((1000,), "f4")])
    del weights
    gc.collect()
    assert gone() is None


def test_configuration_is_followed_and_left() -> None:
    before = {name: getattr(jax.config, name, None) for name in jax.config.values}
    with jax.default_matmul_precision("highest"):
        program = lower(jnp.matmul, [S((2, 2), "f8")] * 2)
    assert "HIGHEST" in program.text
    with jax.disable_jit():
        assert lower(jax.jit(jnp.sin), [S((2,), "f4")]).inputs[0].shape == (2,)
    with pytest.raises(LoweringError):
        lower(raises, [S((), "f8")])
    assert {name: getattr(jax.config, name, None) for name in jax.config.values} == before


def test_two_processes_lower_to_the_same_bytes() -> None:
    code = """
        import hashlib, jax, jax.numpy as jnp
        from cyxla.lowering.lower import lower
        program = lower(lambda x: jnp.sin(x) * 2, [jax.ShapeDtypeStruct((3,), "f4")])
        print(hashlib.sha256(program.stablehlo + program.text.encode()).hexdigest())
    """
    assert run_code(code) == run_code("\n\n" + code)


def test_without_jax() -> None:
    output = run_code("""
        import sys
        sys.modules["jax"] = None
        import cyxla
        try:
            cyxla.lower(abs, [1.0])
        except cyxla.LoweringError as error:
            print(error)
    """)
    assert "lowering needs jax: pip install 'jax>=0.10.2'" in output


def test_lower_is_public() -> None:
    assert cyxla.lower is lower
    assert cyxla.Program is Program
    assert cyxla.ProgramArray is ProgramArray
