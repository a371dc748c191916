# SPDX-License-Identifier: Apache-2.0
"""Cases in which similar projects give wrong results silently.

The programs run; test_lowering_refusals.py has the programs that are rejected.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from child_process import run_code
from cyxla.errors import ArgumentError

S = jax.ShapeDtypeStruct


def build(function: Callable[..., Any], *arguments: Any) -> cyxla.Executable:
    return cyxla.compile_program(cyxla.lower(function, arguments))[0]


# Unused arguments keep their position.


def test_an_unused_argument_keeps_its_place() -> None:
    f = build(lambda a, b, c: a + c, S((2,), "f4"), S((3,), "f4"), S((2,), "f4"))
    a, b, c = np.full(2, 1, "f4"), np.full(3, 9, "f4"), np.full(2, 4, "f4")
    np.testing.assert_array_equal(f.run([a, b, c])[0], [5, 5])
    for arrays in ([a, c], [a, b, c, a], []):
        with pytest.raises(ArgumentError, match=rf"3.*{len(arrays)}|{len(arrays)}.*3"):
            f.run(arrays)


def test_a_gradient_that_uses_no_argument_at_all() -> None:
    g = build(jax.grad(lambda x, p: (3 * x).sum()), S((2,), "f4"), S((5,), "f4"))
    np.testing.assert_array_equal(g.run([np.ones(2, "f4"), np.zeros(5, "f4")])[0], [3, 3])


@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("used", list(itertools.product([False, True], repeat=3)))
def test_every_set_of_used_arguments(jit: Callable[..., Any], used: tuple[bool, ...]) -> None:
    def function(*arrays: Any) -> Any:
        return sum((array.sum() for array, use in zip(arrays, used, strict=True) if use), 0.0)

    f = build(jit(function), *(S((size,), "f4") for size in (2, 3, 4)))
    arrays = [np.full(size, 10.0**size, "f4") for size in (2, 3, 4)]
    expected = sum(float(array.sum()) for array, use in zip(arrays, used, strict=True) if use)
    assert f.run(arrays)[0] == expected


# 64-bit dtypes.


def test_float64_is_computed_in_float64() -> None:
    before = jax.config.jax_enable_x64
    f = build(jnp.sin, S((3,), np.float64))
    (out,) = f.run([np.array([1e-9, 0.5, 1.0])])
    assert jax.config.jax_enable_x64 == before
    assert out.dtype == np.float64
    assert abs(out[0] - 1e-9) < 1e-24


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("f8", 1 + 2.0**-40),
        ("i8", 2**40 + 1),
        ("u8", 2**63 + 1),
        ("c16", complex(1 + 2.0**-40, 2.0**-41)),
    ],
)
def test_every_wide_dtype_keeps_its_bits(dtype: str, value: Any) -> None:
    f = build(lambda x, y: (y, y - 1, x), S((), "f4"), S((2,), dtype))
    same, less, narrow = f.run([np.float32(0), np.array([value, value], dtype)])
    assert same.dtype == less.dtype == np.dtype(dtype)
    assert narrow.dtype == np.float32
    assert same.tolist() == [value, value]
    assert less.tolist() == [value - 1, value - 1]


# Containers are flattened in JAX's order.


def test_dictionaries_are_sorted_and_none_disappears() -> None:
    program = cyxla.lower(
        lambda d: (d["a"].sum() - d["b"].sum(), None, d["b"]),
        [{"b": S((2,), "f4"), "a": S((3,), "f4")}],
    )
    assert [array.name for array in program.inputs] == ["d['a']", "d['b']"]
    outputs = cyxla.compile_program(program)[0].run([np.full(3, 10, "f4"), np.full(2, 1, "f4")])
    assert len(outputs) == 2
    assert outputs[0] == 28
    np.testing.assert_array_equal(outputs[1], [1, 1])


def test_names_lead_to_the_right_leaves() -> None:
    tree = {"z": S((1,), "f4"), "a": [S((2,), "f4"), {"k": S((3,), "f4")}]}

    def function(tree: Any, scale: Any) -> Any:
        return {"back": tree, "scaled": [tree["a"][1]["k"] * scale, 3]}

    program = cyxla.lower(function, [tree, S((), "f4")])
    values = {
        "tree['a'][0]": np.arange(2, dtype="f4"),
        "tree['a'][1]['k']": np.arange(3, dtype="f4"),
        "tree['z']": np.arange(1, dtype="f4"),
        "scale": np.float32(2),
    }
    arrays = [values[array.name] for array in program.inputs]
    outputs = cyxla.compile_program(program)[0].run(arrays)
    by_name = dict(zip((array.name for array in program.outputs), outputs, strict=True))
    np.testing.assert_array_equal(by_name["result['back']['a'][1]['k']"], [0, 1, 2])
    np.testing.assert_array_equal(by_name["result['back']['z']"], [0])
    np.testing.assert_array_equal(by_name["result['scaled'][0]"], [0, 2, 4])
    assert by_name["result['scaled'][1]"] == 3


def test_integer_keys() -> None:
    f = build(lambda d: d[0] - d[1], {1: S((2,), "f4"), 0: S((2,), "f4")})
    np.testing.assert_array_equal(f.run([np.full(2, 5, "f4"), np.full(2, 1, "f4")])[0], [4, 4])


# Closed-over arrays are part of the program.


@pytest.mark.parametrize("flag", ["0", "1"])
def test_closed_over_arrays(flag: str) -> None:
    output = run_code(
        """
        import numpy as np, jax, cyxla
        a = np.eye(300, dtype="f4") * 2
        program = cyxla.lower(lambda x: a @ x, (jax.ShapeDtypeStruct((300,), "f4"),))
        print(cyxla.compile_program(program)[0].run([np.ones(300, "f4")])[0][0])
        """,
        env={"JAX_USE_SIMPLIFIED_JAXPR_CONSTANTS": flag},
    )
    assert output.split() == ["2.0"]


# Donation does not delete arrays.


@pytest.mark.parametrize("donated", [0, 1, (0, 1)])
def test_donated_arguments_stay_whole(donated: Any) -> None:
    f = build(
        jax.jit(lambda x, y: x + y, donate_argnums=donated), S((1024,), "f4"), S((1024,), "f4")
    )
    x = np.arange(1024, dtype="f4")
    keep = x.copy()
    for _ in range(3):
        (out,) = f.run([x, x])
        np.testing.assert_array_equal(out, 2 * keep)
        np.testing.assert_array_equal(x, keep)
    bound_output = np.empty(1024, "f4")
    f.run([x, x], out=[bound_output])
    np.testing.assert_array_equal(bound_output, 2 * keep)
    np.testing.assert_array_equal(x, keep)


# Addresses, sizes and strides.


@pytest.mark.parametrize("offset", [0, 1, 4, 16, 32, 63])
@pytest.mark.parametrize("size", [1, 1000])
def test_results_are_independent_of_arguments_and_of_each_other(offset: int, size: int) -> None:
    f = build(lambda x: (x, x.reshape(1, size), x * 2), S((size,), "f4"))
    raw = np.zeros(size * 4 + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    x = raw[start : start + 4 * size].view("f4")
    for value in (3.0, 4.0):  # the second call gets the memory of the first
        x[:] = value
        results = f.run([x])
        x[:] = -1
        assert [float(result.flat[0]) for result in results] == [value, value, 2 * value]
        results[0][:] = 77
        assert results[1].flat[0] == value
        assert x[0] == -1


def test_freed_memory_may_come_back() -> None:
    f = build(lambda x: x + 1, S((1000,), "f4"))
    for value in range(50):
        x = np.full(1000, value, "f4")  # NumPy reuses the address of the last one
        np.testing.assert_array_equal(f.run([x])[0], np.full(1000, value + 1))
        del x


def test_scalars_empty_arrays_and_one_output_twice() -> None:
    f = build(lambda s, e: (s * 2, e.sum(), jnp.zeros((0, 3)), s, s), S((), "f4"), S((0, 4), "f4"))
    results = f.run([np.float32(3), np.zeros((0, 4), "f4")])
    assert [result.shape for result in results] == [(), (), (0, 3), (), ()]
    assert (results[0], results[1], results[4]) == (6, 0, 3)
    results[3][...] = 9
    assert results[4] == 3


def test_no_inputs_and_no_outputs() -> None:
    assert build(lambda x: (), S((3,), "f4")).run([np.zeros(3, "f4")]) == ()
    assert build(lambda: jnp.arange(2.0)).run([])[0].tolist() == [0, 1]
    assert build(lambda: ()).run([]) == ()
    empty = build(lambda x: x, S((0,), "f8"))
    assert empty.run([[]])[0].shape == (0,)


def layouts(shape: Sequence[int]) -> dict[str, np.ndarray]:
    """The same values 0, 1, 2, ... in every layout that NumPy has."""
    values = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    wide = np.zeros((*shape[:-1], 2 * shape[-1]), "f4")
    wide[..., ::2] = values
    raw = np.zeros(values.nbytes + 1, np.uint8)
    odd = raw[1:].view("f4").reshape(shape)
    odd[...] = values
    return {
        "dense": values,
        "every second": wide[..., ::2],
        "backwards": values[..., ::-1].copy()[..., ::-1],
        "column-major": np.asfortranarray(values),
        "transposed": values.T.copy().T,
        "big-endian": values.astype(">f4"),
        "big-endian every second": wide.astype(">f4")[..., ::2],
        "unaligned": odd,
        "read-only": np.frombuffer(values.tobytes(), "f4").reshape(shape),
        "float64": values.astype("f8"),
    }


@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 3, 4)])
@pytest.mark.parametrize("layout", layouts((1,)))
def test_every_layout_is_read_right(layout: str, shape: tuple[int, ...]) -> None:
    f = build(lambda x: x * 2, S(shape, "f4"))
    array = layouts(shape)[layout]
    expected = np.arange(np.prod(shape)).reshape(shape) * 2
    np.testing.assert_array_equal(f.run([array])[0], expected)


def test_zero_strides() -> None:
    f = build(lambda x: x * 2, S((4,), "f4"))
    np.testing.assert_array_equal(f.run([np.broadcast_to(np.float32(5), (4,))])[0], [10] * 4)


# Linear algebra calls jaxlib's handlers.

LINALG = jnp.linalg
FUNCTIONS = {
    "solve": lambda a: LINALG.solve(a, a),
    "inv": LINALG.inv,
    "det": LINALG.det,
    "cholesky": LINALG.cholesky,
    "qr": LINALG.qr,
    "eigh": LINALG.eigh,
    "svd": LINALG.svd,
    "eig": LINALG.eig,
    "lu": jax.scipy.linalg.lu,
    "expm": jax.scipy.linalg.expm,
    "schur": jax.scipy.linalg.schur,
    "sqrtm": jax.scipy.linalg.sqrtm,
    "hessenberg": jax.scipy.linalg.hessenberg,
    "triangular": lambda a: jax.scipy.linalg.solve_triangular(a, a, lower=True),
    "tridiagonal": lambda a: jax.lax.linalg.tridiagonal_solve(*(a[i] for i in range(3)), a),
}


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_linear_algebra(name: str, dtype: str) -> None:
    a = np.array([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 5]], dtype)
    with jax.enable_x64(dtype in ("f8", "c16")):
        wanted = jax.tree.leaves(jax.jit(FUNCTIONS[name])(a))
    got = build(FUNCTIONS[name], S(a.shape, a.dtype)).run([a])
    assert len(got) == len(wanted)
    tolerance = 1e-5 if dtype in ("f4", "c8") else 1e-10
    for result, reference in zip(got, wanted, strict=True):
        np.testing.assert_allclose(result, reference, rtol=tolerance, atol=tolerance)


def test_a_process_that_lowers_nothing_runs_linear_algebra() -> None:
    """The handlers call SciPy's LAPACK through pointers that only cyxla sets."""
    program = cyxla.lower(jnp.linalg.solve, [S((2, 2), "f4"), S((2,), "f4")])
    code = f"""
        import pickle, sys
        import cyxla, numpy as np
        program = pickle.loads({pickle.dumps(program)!r})
        executable, _ = cyxla.compile_program(program)
        print(executable.run([np.eye(2) * 4, np.ones(2)])[0].tolist(), "jax" in sys.modules)
    """
    assert run_code(code).strip() == "[0.25, 0.25] False"


# To JAX a list of numbers is a pytree of scalars, which is seldom intended.


def test_numbers_in_a_list_stay_a_pytree_where_the_function_takes_them() -> None:
    program = cyxla.lower(lambda pair, more: pair[0] * more["k"][1], [[1.0, 2.0], {"k": (3, 4)}])
    names = [array.name for array in program.inputs]
    assert names == ["pair[0]", "pair[1]", "more['k'][0]", "more['k'][1]"]
    (result,) = cyxla.compile_program(program)[0].run([1.5, 2.0, 3, 4])
    assert result == 6


@pytest.mark.parametrize(
    ("argument", "advice"),
    [
        (
            (2, 3),
            "a tuple of Python numbers, which JAX takes as a pytree of scalars: for an array of"
            " this shape write jax.ShapeDtypeStruct((2, 3), np.float64), for one of these values"
            " np.array((2, 3))",
        ),
        (
            [1.0, 2.0],
            "a list of Python numbers, which JAX takes as a pytree of scalars: for an array of"
            " these values write np.array([1.0, 2.0])",
        ),
        (
            [[1, 2], [3, 4]],
            "a list of Python numbers, which JAX takes as a pytree of scalars: for an array of"
            " these values write np.array([[1, 2], [3, 4]])",
        ),
    ],
)
def test_numbers_in_a_list_where_an_array_was_meant(argument: Any, advice: str) -> None:
    with pytest.raises(cyxla.LoweringError) as caught:
        cyxla.lower(lambda a, x: jnp.sin(x), [S((2,), "f4"), argument], name="f")
    assert str(caught.value).startswith("'f' cannot be lowered: TypeError: sin requires")
    assert str(caught.value).endswith(f"; argument 1 ('x') is {advice}")
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_type_instead_of_an_array() -> None:
    with pytest.raises(ArgumentError) as caught:
        cyxla.lower(lambda x: x, [((2,), np.float32)])
    assert str(caught.value) == (
        "argument 0 ('x[1]'): expected a jax.ShapeDtypeStruct or an array, got the type float32;"
        " write jax.ShapeDtypeStruct(shape, float32)"
    )
