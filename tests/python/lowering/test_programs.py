# SPDX-License-Identifier: Apache-2.0
"""Programs of every kind, compiled by the default plugin, give the results of `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import cyxla
from support.programs.check import arguments_of, compare, lowered, reference
from support.programs.entry import Program
from support.programs.table import PROGRAMS, select


def run_both(function: Callable[..., Any], arguments: list[Any]) -> list[tuple[Any, Any]]:
    """The results of the program and of `jax.jit`, leaf by leaf."""
    entry = Program(function, lambda _: arguments, frozenset())
    program = lowered(entry, arguments)
    executable, _ = cyxla.compile_program(program)
    got = executable.run(jax.tree.leaves(arguments))
    wanted = reference(entry, arguments)
    assert len(got) == len(wanted) == len(program.outputs)
    for array, right, declared in zip(got, wanted, program.outputs, strict=True):
        assert array.dtype == right.dtype == declared.dtype
        assert array.shape == right.shape == declared.shape
        assert array.flags.c_contiguous
        assert array.nbytes == declared.size_bytes
    return list(zip(got, wanted, strict=True))


def check(function: Callable[..., Any], arguments: list[Any]) -> None:
    """Compare the results of the program and of `jax.jit`."""
    results = run_both(function, arguments)
    compare([got for got, _ in results], [wanted for _, wanted in results])


@pytest.mark.parametrize("name", select("jit"))
def test_program_of_the_table(name: str) -> None:
    program = PROGRAMS[name]
    check(program.function, arguments_of(name, program))


# Programs that are checked more strictly, or do not fit into the table.


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 3, 100], dtype)
    y = np.array([1, 2, 3, 5, 7, 11], dtype)

    def function(x: Any, y: Any) -> Any:
        return (
            [x + y, x - y, x * y, x // y, x % y, x & y, x | y, x ^ y, ~x, x >> 1, x << 2],
            [jnp.sort(x), jnp.cumsum(y), x.max(), x > y, lax.population_count(x), lax.clz(x)],
        )

    check(function, [x, y])


def test_bool() -> None:
    x, y = np.array([True, False, True]), np.array([True, True, False])

    def function(x: Any, y: Any) -> Any:
        return x & y, x | y, x ^ y, ~x, x.any(), x.sum(), jnp.where(x, 1.5, 2.5), jnp.argmax(y)

    check(function, [x, y])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype: str) -> None:
    rng = np.random.default_rng(5)
    z, a = (
        (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
        for shape in ((5,), (5, 5))
    )

    def function(z: Any, a: Any) -> Any:
        hermitian = a @ a.conj().T + 5 * jnp.eye(5)
        return (
            [z * z.conj(), jnp.abs(z), jnp.angle(z), jnp.exp(z), jnp.log(z), jnp.sqrt(z), z.real],
            [jnp.fft.fft(z), jnp.linalg.solve(hermitian, z), jnp.linalg.eigvalsh(hermitian)],
            [jnp.linalg.cholesky(hermitian), jnp.sin(z), z**3, lax.complex(z.imag, z.real)],
        )

    check(function, [z, a])


@pytest.mark.parametrize(
    "dtype",
    [
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3b11fnuz,
        ml_dtypes.float8_e5m2fnuz,
        ml_dtypes.float8_e4m3fnuz,
    ],
)
def test_small_floats(dtype: Any) -> None:
    x = np.array([0.5, -1.5, 2.0, 0.0], dtype)
    y = np.array([0.25, 3.0, -1.0, 1.0], dtype)

    def function(x: Any, y: Any) -> Any:
        return x, -x, x * y, x + y, x.astype(jnp.float32) / 2, jnp.maximum(x, y), x > y

    for got, wanted in run_both(function, [x, y]):
        # One rounding to the type may differ.
        tolerance = 0.0 if got.dtype.kind in "b" else float(ml_dtypes.finfo(got.dtype).eps)
        np.testing.assert_allclose(
            got.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=0
        )


def test_random_numbers() -> None:
    key = np.array([0, 42], np.uint32)

    def function(key: Any) -> Any:
        keys = jax.random.split(key, 3)
        return (
            [keys, jax.random.bits(keys[0], (9,)), jax.random.permutation(keys[1], 10)],
            [jax.random.uniform(keys[0], (5,)), jax.random.normal(keys[1], (5,))],
            [jax.random.randint(keys[2], (5,), 0, 100), jax.random.exponential(keys[2], (3,))],
            jax.random.choice(keys[0], jnp.arange(10.0), (4,), replace=False),
        )

    check(function, [key])


def test_typed_keys_inside_the_function() -> None:
    bits = np.array([7, 9], np.uint32)

    def function(bits: Any) -> Any:
        key = jax.random.wrap_key_data(bits)
        return jax.random.key_data(jax.random.fold_in(key, 3)), jax.random.bits(key, (4,))

    check(function, [bits])


def test_no_inputs_and_no_outputs() -> None:
    assert run_both(lambda: (), []) == []


def test_mixed_dtypes_and_indices() -> None:
    arguments = [
        {"table": np.arange(12, dtype="f4").reshape(4, 3), "rows": np.array([3, 0, 3], "i4")},
        np.array([True, False, True]),
        np.array(2, "u1"),
    ]

    def function(data: Any, mask: Any, factor: Any) -> Any:
        return jnp.where(mask[:, None], data["table"][data["rows"]] * factor, -1), factor + 1

    for got, wanted in run_both(function, arguments):
        np.testing.assert_array_equal(got, wanted)


def test_wide_integers_beside_narrow_floats() -> None:
    arguments = [np.arange(3, dtype="f4"), np.array([2, 1, 0], "i8")]
    for got, wanted in run_both(lambda x, index: (x[index], index * 2**40), arguments):
        np.testing.assert_array_equal(got, wanted)


def test_not_a_number_and_infinity() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 3.4e38], "f4")

    def function(x: Any) -> Any:
        return x * 2, jnp.isnan(x), jnp.maximum(x, 0), jnp.nan_to_num(x), jnp.signbit(x), x / 0

    for got, wanted in run_both(function, [x]):
        np.testing.assert_array_equal(got, wanted)


def test_a_mesh_of_one_device() -> None:
    mesh = jax.make_mesh((1,), ("a",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])
    spec = PartitionSpec("a")

    def constrained(x: Any) -> Any:
        return lax.with_sharding_constraint(x * 2, NamedSharding(mesh, spec)) + 1

    summed = jax.shard_map(
        lambda x: lax.psum(x, "a"), mesh=mesh, in_specs=spec, out_specs=PartitionSpec()
    )
    x = np.arange(4, dtype="f4")
    for function in (constrained, summed):
        for got, wanted in run_both(function, [x]):
            np.testing.assert_array_equal(got, wanted)
