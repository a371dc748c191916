# SPDX-License-Identifier: Apache-2.0
"""`lower` rejects programs that native callers could not call, and names the reason."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, io_callback
from jax.extend.mlir import ir
from jax.interpreters import mlir

from child_process import run_code
from cyxla.errors import ArgumentError, LoweringError
from cyxla.lowering import jax_internals, stablehlo
from cyxla.lowering.lower import lower

S = jax.ShapeDtypeStruct


def refusal(function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    with pytest.raises(LoweringError) as caught:
        lower(function, arguments, **options)
    assert not isinstance(caught.value.__cause__, LoweringError)  # warns once
    return str(caught.value)


# 64-bit leaves keep their dtype under every global setting.

WIDE = ["f8", "i8", "u8", "c16"]


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("dtype", WIDE)
def test_wide_leaves_stay_wide(dtype: str, flag: bool) -> None:
    with jax.enable_x64(flag):
        for argument in (S((3,), dtype), {"deep": [S((2,), "f4"), S((3,), dtype)]}):
            program = lower(lambda x: x, [argument])
            assert program.inputs[-1].dtype == np.dtype(dtype)
            assert program.outputs[-1].dtype == np.dtype(dtype)
            assert program.inputs[-1].size_bytes == 3 * np.dtype(dtype).itemsize
        assert jax.config.jax_enable_x64 == flag


@pytest.mark.parametrize("dtype", WIDE)
def test_x64_off_with_a_wide_leaf_names_the_argument(dtype: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        lower(lambda x, p: x, [S((), "f4"), {"k": S((3,), dtype)}], x64=False)
    message = f"argument 1 (\"p['k']\") is {np.dtype(dtype).name}, which x64=False would narrow"
    assert message in str(caught.value)


@pytest.mark.parametrize("flag", [False, True])
def test_x64_forces_either_way(flag: bool) -> None:
    def function(x: Any) -> Any:
        return x, jnp.zeros(2)

    with jax.enable_x64(flag):
        default = [str(array.dtype) for array in lower(function, [S((), "f4")]).outputs]
        assert default == ["float32", "float64" if flag else "float32"]
        for x64 in (False, True):
            program = lower(function, [S((), "f4")], x64=x64)
            assert program.outputs[1].dtype == (np.float64 if x64 else np.float32)
        assert jax.config.jax_enable_x64 == flag


def test_the_flag_is_left_after_an_error() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("on purpose")

    before = jax.config.jax_enable_x64
    refusal(fails, S((3,), "f8"))
    assert jax.config.jax_enable_x64 == before


# Static shapes.


@pytest.mark.parametrize("dimension", ["b", "2*b + 1"])
def test_symbolic_dimensions_are_refused(dimension: str) -> None:
    (symbol,) = jax.export.symbolic_shape(dimension)
    message = refusal(lambda x, y: x, S((3,), "f4"), [S((2, symbol), "f4")])
    for word in ("argument 1 ('y[0]')", f"dimension {symbol}", "symbolic", "static shapes"):
        assert word in message


class Shaped:
    """A user's array class, with shape and dtype only."""

    def __init__(self, shape: tuple[Any, ...]) -> None:
        self.shape = shape
        self.dtype = np.dtype("f4")


@pytest.mark.parametrize("dimension", [2.7, "3", None, -1, np.float32(2)])
def test_an_invalid_dimension(dimension: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        lower(lambda x, y: x, [S((3,), "f4"), [Shaped((2, dimension))]])
    assert str(caught.value) == (
        f"argument 1 ('y[0]'): dimension {dimension!r} of shape (2, {dimension!r}) is not an"
        " integer of at least 0"
    )


def test_an_array_that_nothing_can_hold() -> None:
    message = r"'x'\): the shape \(4611686018427387904, 4\) takes 73786976294838206464 bytes, which"
    with pytest.raises(ArgumentError, match=message):
        lower(lambda x: x, [S((2**62, 4), "f4")])
    assert lower(lambda x: x, [S((np.int64(2), 0), "f4")]).inputs[0].shape == (2, 0)


# Parameters that JAX adds.


@pytest.mark.parametrize("flag", ["0", "1"])
@pytest.mark.parametrize("warm", [False, True])
def test_closed_over_arrays_are_not_parameters(flag: str, warm: bool) -> None:
    output = run_code(
        f"""
        import numpy as np, jax, jax.numpy as jnp
        from cyxla.lowering.lower import lower
        a, b = np.eye(300, dtype="f4"), jnp.eye(300)
        jitted = jax.jit(lambda x: a @ x + b @ x)
        if {warm}:
            jitted(np.ones(300, "f4"))
        one, two = (jax.ShapeDtypeStruct(shape, "f4") for shape in ((300,), (2, 300)))
        plain = lambda x: a @ x + b @ x
        for function, argument in ((jitted, one), (plain, one), (jax.vmap(jitted), two)):
            program = lower(function, [argument])
            print(len(program.inputs), "jax.const" in program.text)
        print(jitted(np.ones(300, "f4"))[0])
        """,
        env={"JAX_USE_SIMPLIFIED_JAXPR_CONSTANTS": flag},
    )
    assert output.split() == ["1", "False"] * 3 + ["2.0"]


@pytest.mark.parametrize(
    ("attribute", "feature"),
    [
        ("jax.token = true", "ordered effects"),
        ('jax.global_constant = "b"', "symbolic dimensions or several platforms"),
        ("jax.const = true", "constants passed as arguments"),
    ],
)
def test_added_parameters_are_refused_by_their_feature(attribute: str, feature: str) -> None:
    context = mlir.make_ir_context()
    with context:
        module = ir.Module.parse(
            f"""func.func public @main(%a: tensor<f32>, %b: tensor<i32> {{{attribute}}})
            -> tensor<f32> {{ return %a : tensor<f32> }}"""
        )
    with pytest.raises(LoweringError, match=f"added parameter 1 .* for {feature}"):
        stablehlo.portable_artifact(module, "main")


@pytest.mark.parametrize("kind", ["!stablehlo.token", "tensor<?xf32>", "tensor<2xi4>"])
def test_types_without_memory_are_refused(kind: str) -> None:
    with mlir.make_ir_context():
        module = ir.Module.parse(f"func.func public @main(%a: {kind}) {{ return }}")
    with pytest.raises(LoweringError) as caught:
        stablehlo.portable_artifact(module, "main")
    assert f"a parameter has type {kind}" in str(caught.value)


def test_exported_functions_of_several_platforms_keep_their_parameters() -> None:
    exported = jax.export.export(jax.jit(jnp.sin), platforms=("cpu", "cuda"))(S((3,), "f4"))
    program = lower(exported.call, [S((3,), "f4")], platform="cpu")
    assert [array.name for array in program.inputs] == ["args[0]"]


# Unused arguments and donation.


@pytest.mark.parametrize(
    "jit", [lambda f: f, jax.jit, functools.partial(jax.jit, donate_argnums=(0, 1))]
)
@pytest.mark.parametrize("used", list(itertools.product([False, True], repeat=3)))
def test_unused_arguments_stay(jit: Callable[..., Any], used: tuple[bool, ...]) -> None:
    def function(*arrays: Any) -> Any:
        return sum((array.sum() for array, use in zip(arrays, used, strict=True) if use), 0.0)

    program = lower(jit(function), [S((2,), "f4"), S((3,), "f4"), S((4,), "f4")])
    assert [array.shape for array in program.inputs] == [(2,), (3,), (4,)]


@pytest.mark.parametrize("argument", [(0,), (0, 1), ()])
def test_donation_leaves_no_mark(argument: tuple[int, ...]) -> None:
    donating = jax.jit(lambda x, y: (x + y, x * y), donate_argnums=argument)
    arguments = [S((1024,), "f4"), S((1024,), "f4")]
    lowered = donating.lower(*arguments)
    assert ("tf.aliasing_output" in lowered.as_text()) == bool(argument)
    direct = stablehlo.portable_artifact(lowered.compiler_ir("stablehlo"), "donating")
    for text in (lower(donating, arguments).text, direct.text):
        assert "aliasing" not in text
        assert "donor" not in text


def test_donation_without_an_output_of_the_shape_leaves_no_mark() -> None:
    attributes = "{jax.buffer_donor = true}"
    with mlir.make_ir_context():
        module = ir.Module.parse(
            f"func.func public @main(%a: tensor<2xf32> {attributes}) {{ return }}"
        )
    artifact = stablehlo.portable_artifact(module, "main")
    assert "donor" not in artifact.text
    assert b"donor" not in artifact.code


# Host callbacks and effects.


def prints(x: Any) -> Any:
    jax.debug.print("x = {x}", x=x)
    return x + 1


def prints_in_order(x: Any) -> Any:
    jax.debug.print("x = {x}", x=x, ordered=True)
    return x + 1


def calls_back(x: Any) -> Any:
    return jax.pure_callback(np.sin, S((), "f4"), x)


def calls_io(x: Any) -> Any:
    return io_callback(np.sin, S((), "f4"), x, ordered=True)


def debugs(x: Any) -> Any:
    jax.debug.callback(print, x)
    return x


HOST_CALLS = {
    prints: "debug_print",
    prints_in_order: "debug_print",
    calls_back: "pure_callback",
    calls_io: "io_callback",
    debugs: "debug_callback",
}


def in_while(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: jax.lax.while_loop(lambda c: c < 3, function, x)


def in_cond(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: jax.lax.cond(x > 0, function, lambda c: c, x)


def in_scan(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: jax.lax.scan(lambda c, _: (function(c), None), x, None, length=2)[0]


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@pytest.mark.parametrize("function", HOST_CALLS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [plain, jax.jit, in_while, in_cond, in_scan])
def test_host_calls_are_refused_where_they_stand(
    function: Callable[..., Any], wrap: Callable[..., Any]
) -> None:
    if function in (prints_in_order, calls_io) and wrap is in_cond:
        function = prints  # JAX has no ordered effects in cond
    message = refusal(wrap(function), S((), "f4"), platform="cuda")
    line = function.__code__.co_firstlineno + 1
    assert f"{HOST_CALLS[function]} at {__file__}:{line}" in message
    assert f"({function.__name__})" in message
    assert "calls back into Python, which programs for 'cuda' cannot" in message


def test_every_host_call_is_listed() -> None:
    message = refusal(lambda x: calls_back(prints(x)), S((), "f4"), platform="cuda")
    assert "debug_print at " in message
    assert "pure_callback at " in message


def test_calls_of_python_by_any_primitive_are_refused() -> None:
    def call(x: Any) -> Any:
        return jax.ffi.ffi_call("xla_ffi_python_cpu_callback", S((), "f4"))(x)

    message = refusal(call, S((), "f4"), platform="cpu")
    assert "custom call xla_ffi_python_cpu_callback that refers to none of its host" in message
    assert "Traceback" not in message


@pytest.mark.parametrize(("given", "returned"), [("i4", "f4"), ("f4", "i4")])
def test_callbacks_with_elements_smaller_than_a_byte_are_refused(given: str, returned: str) -> None:
    dtypes = {"i4": jnp.int4, "f4": jnp.float32}

    def call(x: Any) -> Any:
        result = S((3,), dtypes[returned])
        return jax.pure_callback(np.sin, result, x.astype(dtypes[given])).astype("f4")

    message = refusal(call, S((3,), "f4"), platform="cpu")
    side = "argument" if given == "i4" else "result"
    assert "the host callback pure_callback at " in message
    line = call.__code__.co_firstlineno + 2
    assert f"test_lowering_refusals.py:{line} has a {side} of type tensor<3xi4>" in message


@pytest.mark.parametrize(
    "target", ["xla_buffer_python_cpu_callback", "xla_ffi_python_gpu_callback"]
)
def test_calls_that_need_jax_own_client_are_refused(target: str) -> None:
    def call(x: Any) -> Any:
        return jax.ffi.ffi_call(target, S((), "f4"))(x)

    message = refusal(call, S((), "f4"), platform="cpu")
    assert f"calls back into Python through custom call {target}" in message


def test_effects_are_refused_by_name() -> None:
    counter = jax.new_ref(jnp.zeros(()))

    def counts(x: Any) -> Any:
        counter[...] = counter[...] + 1
        return x

    message = refusal(counts, S((), "f4"))
    for word in ("side effects", "ReadEffect", "WriteEffect", "jax.Ref as an argument"):
        assert word in message

    def checks(x: Any) -> Any:
        checkify.check(x > 0, "not positive")
        return x

    assert "ErrorEffect" in refusal(checks, S((), "f4"))
    assert "checkify.checkify" in refusal(checks, S((), "f4"))


def test_a_ref_of_the_function_itself_is_fine() -> None:
    def function(x: Any) -> Any:
        reference = jax.new_ref(x)
        reference[...] = reference[...] * 2
        return reference[...]

    program = lower(function, [S((2,), "f4")])
    assert [array.shape for array in program.inputs] == [(2,)]


# Several devices.


def test_sharding_over_devices() -> None:
    output = run_code(
        """
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        from cyxla.lowering.lower import lower
        from cyxla.errors import LoweringError
        mesh = jax.make_mesh((2,), ("a",), axis_types=(AxisType.Auto,))
        one = jax.make_mesh((1,), ("a",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])
        spec = jax.ShapeDtypeStruct((4,), "f4")
        def constrained(mesh):
            return lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("a"))) * 2
        def summed(mesh):
            return jax.shard_map(
                lambda x: jax.lax.psum(x, "a"), mesh=mesh, in_specs=P("a"), out_specs=P()
            )
        for make in (constrained, summed):
            try:
                lower(make(mesh), [spec])
            except LoweringError as error:
                print("over 2 devices" in str(error), "cannot be lowered" in str(error))
            print(len(lower(make(one), [spec]).inputs))
        for mesh in (mesh, mesh.abstract_mesh, one):
            placed = jax.ShapeDtypeStruct((4,), "f4", sharding=NamedSharding(mesh, P("a")))
            try:
                print(len(lower(jnp.sin, [placed]).inputs))
            except LoweringError as error:
                print("argument 0 ('x'): it is sharded over 2 devices" in str(error))
        """,
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
    )
    assert output.split() == ["True", "True", "1"] * 2 + ["True", "True", "1"]


def test_a_private_part_that_jax_no_longer_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(jax._src.config, "enable_x64")
    missing = rf"needs jax._src.config.enable_x64, which JAX {jax.__version__} does not have"
    with pytest.raises(LoweringError, match=missing):
        jax_internals.is_x64_enabled()
    with pytest.raises(LoweringError, match=r"needs jax.stages.Lowered._lowering.compile_args"):
        jax_internals.host_callbacks_of(object())  # type: ignore[arg-type]
    jax_internals.forget(None)
