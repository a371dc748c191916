# SPDX-License-Identifier: Apache-2.0
"""`lower` warns of large arrays that a function closes over."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.mlir import ir
from jax.interpreters import mlir

import cyxla
from cyxla import LARGE_CONSTANTS_BYTES, LargeConstantsWarning, lower
from cyxla.lowering import stablehlo

S = jax.ShapeDtypeStruct
LIMIT = LARGE_CONSTANTS_BYTES


def lower_with(*constants: Any) -> list[warnings.WarningMessage]:
    """The warnings of lowering a function of these constants."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lower(lambda x: (x, *map(jnp.asarray, constants)), [S((), "f4")], platform="cpu", name="f")
    return caught


def values(size_bytes: int, dtype: Any) -> Any:
    return (np.arange(size_bytes // np.dtype(dtype).itemsize) % 7).astype(dtype)


def test_the_message() -> None:
    constants = [values(size, "f4") for size in (40, LIMIT, 800, 8)]
    (warning,) = lower_with(*constants, constants[1].reshape(2, -1))
    assert warning.category is LargeConstantsWarning
    assert issubclass(LargeConstantsWarning, UserWarning)
    assert warning.filename == __file__
    assert str(warning.message) == (
        f"program 'f' has constants of {2 * LIMIT + 848} bytes: float32 of shape (65536,)"
        " (262144 bytes), float32 of shape (2, 32768) (262144 bytes), float32 of shape (200,)"
        " (800 bytes) and 2 more. They are copied into it and make it slow to lower and compile."
        " Pass the arrays that the function closes over as arguments, or silence this with"
        " warnings.filterwarnings('ignore', category=cyxla.LargeConstantsWarning)"
    )


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float32, jnp.bfloat16, np.complex64])
def test_every_dtype_counts(make: Callable[[Any], Any], dtype: Any) -> None:
    assert len(lower_with(make(values(LIMIT + 8, dtype)))) == 1
    assert lower_with(make(values(LIMIT, dtype))) == []


def test_they_count_together_and_wherever_they_stand() -> None:
    half = values(LIMIT // 2, "f4")
    assert lower_with(half) == []
    assert len(lower_with(half, half[::-1].copy(), 1 + np.arange(3))) == 1
    large = values(2 * LIMIT, "f4")
    with pytest.warns(LargeConstantsWarning):
        lower(lambda x: jax.lax.fori_loop(0, 3, lambda _, v: v + large.sum() * large, x), [large])


def test_one_value_throughout_does_not_count() -> None:
    assert lower_with(np.full(LIMIT, 2.0), jnp.ones(LIMIT), np.zeros(0)) == []


def test_constants_smaller_than_a_byte_may_stand_inside() -> None:
    program = lower(lambda x: x + jnp.arange(3).astype(jnp.int4).astype(x.dtype), [S((3,), "f4")])
    assert program.outputs[0].shape == (3,)
    table = np.array([1, 2, 3], jnp.int4)
    assert lower(lambda x: x + jnp.asarray(table).astype("f4"), [S((3,), "f4")]).flops is not None


@pytest.mark.parametrize(
    "constant", ["dense<1.0> : tensor<f32>", "dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>"]
)
def test_the_time_of_finding_them_grows_with_their_number(constant: str) -> None:
    def seconds(count: int) -> float:
        lines = "\n".join(f"%{i} = stablehlo.constant {constant}" for i in range(count))
        with mlir.make_ir_context():
            module = ir.Module.parse(f"func.func public @main() {{ {lines} return }}")
        start = time.process_time()
        stablehlo.portable_artifact(module, "main")
        return time.process_time() - start

    # When each constant printed its function, eight times the constants took 64 times as long.
    tries = [(seconds(500), seconds(4000)) for _ in range(3)]
    assert min(large for _, large in tries) < 24 * min(small for small, _ in tries)


def test_arguments_do_not_count() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower(lambda x, y: x + y, [values(2 * LIMIT, "f4"), S((LIMIT // 2,), "f4")])


def test_it_can_be_silenced_or_made_an_error() -> None:
    large = values(2 * LIMIT, "f4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LargeConstantsWarning):
            lower(lambda x: x + large, [large])
        warnings.filterwarnings("ignore", category=cyxla.LargeConstantsWarning)
        lower(lambda x: x + large, [large])
