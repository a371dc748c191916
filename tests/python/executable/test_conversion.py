# SPDX-License-Identifier: Apache-2.0
"""`run` converts arguments with the bits, warnings and errors of `dtypes.convert`."""

from __future__ import annotations

import array
import contextlib
import ctypes
import functools
import gc
import mmap
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import cyxla
from cyxla import dtypes
from cyxla.errors import ArgumentError
from support.arrays import build

pytestmark = pytest.mark.filterwarnings("ignore::cyxla.NarrowingWarning")

_BUILTIN = "?bhilqBHILQfdFD"
_TARGETS = [
    np.dtype(name)
    for name in (*"?bhiqBHIQfdFD", np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2)
]
_SOURCES = [*(np.dtype(name) for name in _BUILTIN), *_TARGETS[-3:]]


@functools.cache
def _identity(target: np.dtype[Any], *shape: int) -> cyxla.Executable:
    return build(lambda x: x, (shape, target))


def _attempt(convert: Callable[[], Any]) -> Any:
    """The bytes or the error text of a conversion, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = convert()
        except ArgumentError as error:
            return str(error), []
    texts = [str(w.message) for w in caught if w.category is not cyxla.NarrowingWarning]
    return (result.tobytes(), result.dtype, result.shape), texts


def _check(value: Any, target: np.dtype[Any], *shape: int) -> None:
    executable = _identity(target, *shape)
    got = _attempt(lambda: executable.run([value])[0])
    where = "argument 0 ('x')"
    assert got == _attempt(lambda: dtypes.convert(value, executable.input_types[0], where))


def _layouts(values: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The same elements in every memory layout; the last one has a dtype object of its own."""
    spread = np.repeat(values, 3, axis=-1)[..., ::3]
    raw = np.empty(values.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(values.dtype).reshape(values.shape)
    unaligned.view(np.uint8)[...] = values.view(np.uint8)
    swapped = values.byteswap().view(values.dtype.newbyteorder())
    own = values.view(np.dtype(values.dtype, metadata={"unit": "m"}))
    columns = np.asfortranarray(values)
    return [values, values[:, ::-1], spread, unaligned, swapped, swapped[::-1], columns, own]


_EXTREMES = [
    *(np.array(x, "f8").tobytes() for x in (0.0, -0.0, 1e-310, 3.4028235677973366e38, 1e39)),
    *(np.array(x, "f8").tobytes() for x in (np.inf, np.nan, 1e-40, 2.0**127, 3.4028234e38)),
    *(np.array(x, "u8").tobytes() for x in (0x7FF0000000000001, 0x7F8000017F800001, 2**63)),
    *(np.array(x, "i8").tobytes() for x in (-1, 2**53 + 1, 2**24 + 1, 255, 2**31, -(2**63))),
]
_EIGHT_BYTES = st.sampled_from(_EXTREMES) | st.binary(min_size=8, max_size=8)


@pytest.mark.parametrize("source", _SOURCES, ids=str)
@given(st.lists(_EIGHT_BYTES, min_size=12, max_size=12), st.integers(0, 7))
@settings(max_examples=12, deadline=None)
@example(_EXTREMES[:12], 0)
@example(_EXTREMES[7:19], 1)
@example([bytes(8)] * 12, 2)
def test_arrays(source: np.dtype[Any], chunks: list[bytes], layout: int) -> None:
    values = np.frombuffer(b"".join(chunks), source)[:6].reshape(2, 3).copy()
    for target in _TARGETS:
        _check(_layouts(values)[layout], target, 2, 3)


@pytest.mark.parametrize("source", _SOURCES, ids=str)
def test_small_integers_convert_to_every_type_that_holds_them(source: np.dtype[Any]) -> None:
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(source)
    for target in _TARGETS:
        for laid_out in _layouts(values):
            _check(laid_out, target, 2, 3)


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5,), (2, 1, 3), (2, 3, 4, 2)])
def test_shapes_and_axes(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    for given_array in (values, values.T.copy().T, values.astype(">i4"), values[..., np.newaxis]):
        _check(given_array, np.dtype("f8"), *shape)
    _check(np.broadcast_to(np.int8(5), shape), np.dtype("c8"), *shape)


_NUMBERS = (
    st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.integers(-300, 300)
    | st.floats()
    | st.sampled_from([2**24 + 1, 2**53 + 1, 1e300, 1e-40, 2**63, -(2**63)])
)


@given(_NUMBERS | st.complex_numbers())
@settings(max_examples=150, deadline=None)
def test_python_numbers(value: object) -> None:
    for target in _TARGETS:
        _check(value, target)


@given(st.lists(st.lists(_NUMBERS, min_size=2, max_size=2), min_size=2, max_size=2))
@settings(max_examples=150, deadline=None)
@example([[2**24 + 1, 1.0], [0, 0]])
@example([[2**62 + 2**38 + 1, 1.0], [0, 0]])
@example([[True, False], [False, True]])
@example([[1, np.float64(2)], [3.0, 4]])
def test_lists(value: list[Any]) -> None:
    for target in _TARGETS:
        _check(value, target, 2, 2)
        _check(tuple(map(tuple, value)), target, 2, 2)


@pytest.mark.parametrize(
    "value",
    [[], [1], [1, 2, 3], [[1], [2]], [1, [2]], [1, "2"], [1, None], [[], []], [np.int8(1), 2]],
    ids=str,
)
def test_lists_of_other_shapes(value: list[Any]) -> None:
    _check(value, np.dtype("f4"), 2)


@pytest.mark.parametrize("source", [np.dtype(name).type for name in (*_BUILTIN, "e", "g")])
def test_numpy_scalars(source: type[np.generic]) -> None:
    for number in (0, 1, 3, 100):
        for target in _TARGETS:
            _check(source(number), target)  # type: ignore[call-arg]


def _buffers() -> dict[str, Any]:
    mapped = mmap.mmap(-1, 3)
    mapped[:] = b"\x01\x02\x00"
    return {
        **{f"array {code}": array.array(code, [1, 2, 3]) for code in "bBhHiIlLqQfd"},
        **{f"memoryview {code}": memoryview(np.array([1, 0, 2], code)) for code in "?efdFDg"},
        "ctypes": (ctypes.c_int32 * 3)(1, 2, 3),
        "strided": memoryview(np.arange(6.0))[::-2],
        "big-endian": memoryview(np.arange(3, dtype=">f8")),
        "bytes": b"abc",
        "bytearray": bytearray(b"abc"),
        "mmap": mapped,
        "characters": memoryview(b"abc").cast("c"),
        **{f"jax {name}": jnp.array([1, 0, 1], name) for name in ("?", "i4", "f4", "bfloat16")},
    }


@pytest.mark.parametrize("kind", _buffers())
def test_buffers(kind: str) -> None:
    for target in _TARGETS:
        _check(_buffers()[kind], target, 3)
        _check(_buffers()[kind], target, 2)


def _quick_kinds() -> dict[str, Any]:
    """Arguments that the extension itself converts to three doubles."""
    ones = np.ones(3)
    return {
        "list": [1.0, 2, True],
        "tuple": (1.0, 2.0, 3.0),
        "strided": np.ones(6)[::2],
        "float32": ones.astype("f4"),
        "integers": np.arange(3),
        "bools": ones > 0,
        "big-endian": ones.astype(">f8"),
        "metadata": ones.astype(np.dtype("f8", metadata={"unit": "m"})),
        "memoryview": memoryview(ones),
        "jax.Array": jnp.ones(3),
    }


@pytest.mark.parametrize("kind", _quick_kinds())
def test_common_arguments_need_no_python_code(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = _identity(np.dtype("f8"), 3)
    value = _quick_kinds()[kind]
    monkeypatch.setattr(dtypes, "read", None)
    assert executable.run([value])[0].tolist() == np.asarray(value, "f8").tolist()


@pytest.mark.parametrize("value", [0.5, 1, True, np.float64(0.5), np.float32(2), np.int64(3)])
def test_common_numbers_need_no_python_code(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = _identity(np.dtype("f8"))
    monkeypatch.setattr(dtypes, "read", None)
    assert executable.run([value])[0] == value
    assert _identity(np.dtype("c16")).run([value])[0] == value


def test_a_jax_array_is_read_when_it_is_ready_and_then_let_go() -> None:
    executable = build(lambda x: x.sum(), ((400, 400), "f4"))
    multiply = jax.jit(lambda x: x @ x / 400)
    for _ in range(5):
        product = multiply(jnp.ones((400, 400)))
        for _ in range(5):
            product = multiply(product)
        assert executable.run([product])[0] == 160000
    watched = weakref.ref(product)
    del product
    gc.collect()
    assert watched() is None
    deleted = jnp.ones((400, 400))
    executable.run([deleted])
    deleted.delete()
    with pytest.raises(ArgumentError, match="has been deleted"):
        executable.run([deleted])


@pytest.mark.parametrize("target", ["f4", "f8"])
def test_a_known_jax_array_that_other_code_deletes(target: str) -> None:
    """The cache entry of a jax.Array is dropped when the array may be freed."""
    add = build(lambda x, y: x[:3] + y, ((1000,), target), ((3,), "f8"))
    known = jnp.ones(1000)
    for _ in range(4):
        assert add.run([known, [0.0, 1.0, 2.0]])[0].tolist() == [1, 2, 3]

    class Deleting:
        def __array__(self, dtype: object = None, copy: object = None) -> Any:
            known.delete()
            return np.zeros(3)

    deleting: Any = pytest.raises(ArgumentError, match=r"argument 0 .*has been deleted")
    with deleting if target == "f4" else contextlib.nullcontext():  # doubles are a copy by then
        add.run([known, Deleting()])
    with pytest.raises(ArgumentError, match=r"argument 0 .*has been deleted"):
        add.run([known, [0.0, 1.0, 2.0]])
    for i in range(20):  # at reused addresses
        array = jnp.full(1000, float(i))
        for _ in range(3):
            assert add.run([array, [0.0, 1.0, 2.0]])[0].tolist() == [i, i + 1, i + 2]
    watched = weakref.ref(array)
    del array
    gc.collect()
    assert watched() is None


def test_many_converted_arguments() -> None:
    """More converted arguments than fit on the stack, small and large."""
    add = build(lambda *xs: sum(x.sum() for x in xs), *[((n,), "f8") for n in range(1, 60)])
    arguments = [[1.0] * n if n % 2 else np.ones(n, "f4") for n in range(1, 60)]
    assert add.run(arguments)[0] == sum(range(1, 60))
    large = build(lambda x, y: (x + y).sum(), ((200, 300), "f8"), ((200, 300), "f8"))
    numbers = np.arange(60000.0).reshape(300, 200).T
    assert large.run([numbers, numbers.astype("i4")])[0] == 2 * numbers.sum()
