# SPDX-License-Identifier: Apache-2.0
"""Arrays that are used in place: with equal dtypes that are other objects, memmaps, bools."""

from __future__ import annotations

import array
import ctypes
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from cyxla import dtypes
from cyxla.errors import ArgumentError
from support.arrays import build

_S = jax.ShapeDtypeStruct
_WITH_METADATA = np.dtype("f8", metadata={"unit": "m"})

_EQUAL: dict[str, Callable[[], Any]] = {
    "pickled": lambda: pickle.loads(pickle.dumps(np.arange(3.0))),
    "pickled out of band": lambda: pickle.loads(pickle.dumps(np.arange(3.0), 5)),
    "newbyteorder": lambda: np.arange(3, dtype=np.dtype("f8").newbyteorder("<")),
    "metadata": lambda: np.arange(3, dtype=_WITH_METADATA),
    "longlong": lambda: np.arange(3, dtype=np.longlong),
    "long": lambda: np.arange(3, dtype=np.dtype("l")),
    "ctypes": lambda: np.ctypeslib.as_array((ctypes.c_longlong * 3)(0, 1, 2)),
    "array": lambda: np.asarray(array.array("q", [0, 1, 2])),
    "unsigned longlong": lambda: np.arange(3, dtype=np.ulonglong),
    "half": lambda: np.arange(3, dtype=np.dtype("f2", metadata={"a": 1})),
}


@pytest.mark.parametrize("kind", _EQUAL)
def test_an_equal_dtype_is_the_dtype(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = _EQUAL[kind](), _EQUAL[kind]()
    double = build(lambda x: 2 * x, ((3,), np.dtype(x.dtype.str)))
    monkeypatch.setattr(dtypes, "read", None)  # nothing is converted
    assert double.run([x], out=[out])[0] is out
    assert out.tolist() == [0, 2, 4]
    x[:] = [3, 2, 1]
    assert double.bind([x], [out])()[0] is out
    assert out.tolist() == [6, 4, 2]


def test_the_other_byte_order_is_not_equal() -> None:
    double = build(lambda x: 2 * x, ((3,), "f8"))
    with pytest.raises(ArgumentError, match=r"got float64 \(>f8\) of shape \(3,\); it is used in"):
        double.bind([np.ones(3, ">f8")])


def test_dtypes_with_metadata_are_known() -> None:
    assert dtypes.element_type_of(_WITH_METADATA) is cyxla.ElementType.F64
    assert cyxla.aligned_empty(3, _WITH_METADATA).dtype == np.float64
    assert cyxla.aligned_empty(3, np.dtype("f8").newbyteorder("<")).dtype.isnative


def test_a_host_callback_may_return_any_equal_dtype() -> None:
    def callback(x: Any) -> Any:
        return np.asarray(x).astype(_WITH_METADATA)

    vector = _S((3,), "f8")
    program = cyxla.lower(lambda x: jax.pure_callback(callback, vector, x), [vector])
    executable, _ = cyxla.compile_program(program)
    assert executable.run([np.arange(3.0)])[0].tolist() == [0, 1, 2]


def test_bools_of_a_host_callback_are_0_or_1() -> None:
    odd = np.array([2, 0, 255], np.uint8).view(np.bool_)
    flags = _S((3,), np.bool_)
    program = cyxla.lower(
        lambda x: jax.pure_callback(lambda x: odd, flags, x).sum() + x, [_S((), "i4")]
    )
    assert cyxla.compile_program(program)[0].run([0])[0] == 2


def _memmap(path: Path, mode: Any) -> Any:
    if not path.exists():
        np.arange(3.0).tofile(path)
    return np.memmap(path, "f8", mode, shape=(3,))


def test_a_memmap_is_used_in_place(tmp_path: Path) -> None:
    double = build(lambda x: 2 * x, ((3,), "f8"))
    path, result = tmp_path / "x", tmp_path / "y"
    x, out = _memmap(path, "r"), _memmap(result, "r+")
    assert double.run([x], out=[out])[0] is out
    out.flush()
    assert np.fromfile(result).tolist() == [0, 2, 4]
    call = double.bind([_memmap(path, "r+")], [out])
    call.inputs[0][:] = 5
    call()
    assert out.tolist() == [10, 10, 10]
    for refused in (lambda: double.run([x], out=[x]), lambda: double.bind([out], [x])):
        with pytest.raises(ArgumentError, match=r"output 0: the np.memmap of '.*x' is read-only"):
            refused()


def _flags(b: Any) -> Any:
    return b.sum(), ~b, b, b.astype("f4").mean(), jnp.where(b, 1, 2)


_WANTED = [[2], [0, 1, 0], [1, 0, 1], [np.float32(2 / 3)], [1, 2, 1]]


def _as_lists(results: Any) -> list[Any]:
    return [np.ravel(r if r.dtype != bool else r.view(np.uint8)).tolist() for r in results]


@pytest.mark.parametrize("route", ["direct", "pjrt"])
def test_bools_of_any_byte_are_0_or_1(route: str) -> None:
    program = cyxla.lower(_flags, [_S((3,), np.bool_)])
    executable, _ = cyxla.compile_program(program, route=route)
    byte_values = np.array([2, 0, 1], np.uint8)
    flags = byte_values.view(np.bool_)
    spread = np.array([2, 9, 0, 9, 1, 9], np.uint8).view(np.bool_)[::2]
    aligned = cyxla.aligned_empty((3,), np.bool_)
    aligned[...] = flags
    aligned.view(np.uint8)[...] = byte_values
    for given in (flags, spread, aligned, memoryview(flags), flags.tolist()):
        assert _as_lists(executable.run([given])) == _WANTED
    assert byte_values.tolist() == [2, 0, 1]
    for fresh in (False, True):
        call = executable.bind([aligned], fresh=fresh)
        for value in (1, 128, 255, 2):  # written after bind
            aligned.view(np.uint8)[...] = [value, 0, value]
            assert _as_lists(call()) == _WANTED


def test_bools_convert_as_0_or_1() -> None:
    odd = np.array([2, 0, 255], np.uint8).view(np.bool_)
    for target in (np.bool_, np.int32, np.float64, np.complex64, np.float16):
        type_ = dtypes.ArrayType(dtypes.element_type_of(target), (3,))
        assert dtypes.convert(odd, type_, "x").real.tolist() == [1, 0, 1]
        assert dtypes.convert(odd, type_, "x").view(np.uint8).max() in (1, 63, 60, 240, 128)


def test_a_disturbed_bool_is_normalised_after_the_last_conversion() -> None:
    both = build(lambda b, x: b.sum() + x, ((3,), np.bool_), ((), "i4"))
    flags = np.zeros(3, np.bool_)

    class Number:
        def __array__(self, dtype: object = None, copy: object = None) -> Any:
            flags.view(np.uint8)[...] = 2
            return np.array(0, "i4")

    assert both.run([flags, Number()])[0] == 3
