# SPDX-License-Identifier: Apache-2.0
"""Element types, and the conversion of arguments to them."""

from __future__ import annotations

import array
import re
import warnings
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import cyxla
from cyxla import dtypes
from cyxla.dtypes import ArrayType, ElementType, convert
from cyxla.errors import ArgumentError

WHERE = "argument 1 ('p')"
WITH_DTYPE = [kind for kind in ElementType if kind.name not in (
    "INVALID", "S4", "U4", "TOKEN", "S2", "U2", "F4E2M1FN"
)]  # fmt: skip


def array_type(dtype: object, *shape: int) -> ArrayType:
    return ArrayType(dtypes.element_type_of(dtype), shape)


def test_values_are_those_of_the_pjrt_header() -> None:
    text = Path(cyxla.get_include()[0], "pjrt_c_api.h").read_text()
    end = text.index("} PJRT_Buffer_Type;")
    body = text[text.rindex("typedef enum {", 0, end) : end]
    names = re.findall(r"^\s*PJRT_Buffer_Type_(\w+),", body, re.MULTILINE)
    assert {kind.name: kind.value for kind in ElementType} == {
        name: value for value, name in enumerate(names)
    }


@pytest.mark.parametrize("element_type", WITH_DTYPE)
def test_dtype_round_trip(element_type: ElementType) -> None:
    dtype = dtypes.dtype_of(element_type)
    assert dtypes.element_type_of(dtype) is element_type
    bits = {"PRED": 8, "BF16": 16, "C64": 64, "C128": 128}.get(element_type.name)
    bits = bits or int(re.match(r"[SUF](\d+)", element_type.name)[1])  # type: ignore[index]
    assert dtype.itemsize * 8 == bits


@pytest.mark.parametrize("element_type", [ElementType.S4, ElementType.TOKEN, 99])
def test_element_type_without_dtype(element_type: int) -> None:
    name = element_type.name if isinstance(element_type, ElementType) else str(element_type)
    with pytest.raises(ArgumentError, match=rf"element type {name} has no NumPy dtype"):
        dtypes.dtype_of(element_type)


@pytest.mark.parametrize("dtype", ["S3", "U2", "O", "M8[s]", "m8", "longdouble", ml_dtypes.int4])
def test_dtype_without_element_type(dtype: object) -> None:
    with pytest.raises(ArgumentError, match="has no element type; bool, integers"):
        dtypes.element_type_of(dtype)


def test_big_endian_has_the_same_element_type() -> None:
    assert dtypes.element_type_of(">f4") is ElementType.F32


def test_array_type_sizes() -> None:
    kind = array_type(np.complex128, 2, 0, 3)
    assert (kind.dtype, kind.size, kind.size_bytes) == (np.dtype("c16"), 0, 0)
    scalar = array_type(ml_dtypes.bfloat16)
    assert (scalar.size, scalar.size_bytes) == (1, 2)
    assert str(array_type("f4", 3)) == "float32 of shape (3,)"


# NumPy's same_kind rule: the kind of the source, and the kinds it converts to.
ALLOWED = {"b": "buifc", "u": "uifc", "i": "ifc", "f": "fc", "c": "c"}
KIND_OF = {
    kind: {"PRED": "b", "BF16": "f"}.get(kind.name)
    or {"S": "i", "U": "u", "F": "f", "C": "c"}[kind.name[0]]
    for kind in WITH_DTYPE
}


@pytest.mark.parametrize("source", WITH_DTYPE)
@pytest.mark.parametrize("target", WITH_DTYPE)
def test_same_kind_for_every_pair(source: ElementType, target: ElementType) -> None:
    ones = np.ones(3, dtypes.dtype_of(source))
    wanted = ArrayType(target, (3,))
    if KIND_OF[target] in ALLOWED[KIND_OF[source]]:
        result = convert(ones, wanted, WHERE)
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, np.ones(3, wanted.dtype))
    else:
        with pytest.raises(ArgumentError) as caught:
            convert(ones, wanted, WHERE)
        for part in (WHERE, str(wanted), ones.dtype.name, "astype"):
            assert part in str(caught.value)


def test_pairs_agree_with_numpy() -> None:
    builtin = [dtypes.dtype_of(kind) for kind in WITH_DTYPE if kind.value < 16 and kind.value != 13]
    for source in builtin:
        for target in builtin:
            allowed = KIND_OF[dtypes.element_type_of(target)]
            ours = allowed in ALLOWED[KIND_OF[dtypes.element_type_of(source)]]
            assert ours == np.can_cast(source, target, "same_kind"), (source, target)


INTEGERS = [np.dtype(kind) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]


@given(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS), st.data())
def test_integers_convert_only_when_every_value_fits(
    source: np.dtype, target: np.dtype, data: st.DataObject
) -> None:
    values = data.draw(hnp.arrays(source, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0)))
    wanted = array_type(target, *values.shape)
    limits = np.iinfo(target)
    outside = [int(v) for v in values.flat if not limits.min <= int(v) <= limits.max]
    if source.kind == "i" and target.kind == "u":
        with pytest.raises(ArgumentError, match="not converted"):
            convert(values, wanted, WHERE)
    elif outside:
        with pytest.raises(ArgumentError, match="does not fit") as caught:
            convert(values, wanted, WHERE)
        assert any(str(value) in str(caught.value) for value in outside)
    else:
        result = convert(values, wanted, WHERE)
        assert [int(v) for v in result.flat] == [int(v) for v in values.flat]


@given(st.lists(st.integers(-(2**65), 2**65), max_size=5), st.sampled_from(INTEGERS))
def test_python_integers_convert_only_when_they_fit(values: list[int], target: np.dtype) -> None:
    limits = np.iinfo(target)
    wanted = array_type(target, len(values))
    if all(limits.min <= value <= limits.max for value in values):
        assert convert(values, wanted, WHERE).tolist() == values
    else:
        with pytest.raises(ArgumentError, match="does not fit"):
            convert(values, wanted, WHERE)


@given(
    hnp.arrays(
        np.dtype("f8"),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=st.floats(width=64),
    ),
    st.sampled_from(["f2", "f4", "f8", "c8", "c16", "bfloat16", "float8_e5m2", "float8_e4m3fn"]),
    st.sampled_from([">f8", "<f8", ">f4", "<f4", ">f2"]),
    st.data(),
)
def test_any_layout_is_read_as_numpy_reads_it(
    values: np.ndarray, target: str, source: str, data: st.DataObject
) -> None:
    with np.errstate(all="ignore"):
        view = values.astype(source)
        if view.ndim:
            axes = data.draw(st.permutations(range(view.ndim)))
            steps = data.draw(st.lists(st.sampled_from([1, -1, 2]), min_size=view.ndim))
            view = view.transpose(axes)[tuple(slice(None, None, s) for s in steps[: view.ndim])]
        expected = view.astype(target)
        result = convert(view, array_type(target, *view.shape), WHERE)
    assert type(result) is np.ndarray
    assert result.flags.c_contiguous
    assert result.flags.aligned
    assert result.dtype.isnative
    assert result.dtype == expected.dtype
    assert result.tobytes() == np.ascontiguousarray(expected).tobytes()


def test_zero_strides_and_unaligned_memory() -> None:
    spread = np.broadcast_to(np.float32(5), (4,))
    result = convert(spread, array_type("f4", 4), WHERE)
    assert result.tolist() == [5, 5, 5, 5]
    assert result.strides == (4,)
    raw = np.zeros(17, np.uint8)
    odd = raw[1:].view("f4")
    odd[:] = [1, 2, 3, 4]
    assert not odd.flags.aligned
    result = convert(odd, array_type("f4", 4), WHERE)
    assert result.flags.aligned
    assert result.tolist() == [1, 2, 3, 4]


def test_an_array_that_is_right_already_is_not_copied() -> None:
    values = np.arange(6, dtype="f4").reshape(2, 3)
    assert np.shares_memory(convert(values, array_type("f4", 2, 3), WHERE), values)


@pytest.mark.parametrize("shape", [(4,), (1, 3), (3, 1), ()])
def test_shapes_are_exact(shape: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError) as caught:
        convert(np.ones(shape, "f8"), array_type("f4", 3), WHERE)
    assert str(caught.value) == (
        f"{WHERE}: expected float32 of shape (3,), got float64 of shape {shape}:"
        " the shape must be equal, nothing is broadcast"
    )


def test_scalars_are_not_broadcast_either() -> None:
    for value in (2.0, np.float32(2)):
        assert convert(value, array_type("f4"), WHERE).shape == ()
        with pytest.raises(ArgumentError, match=r"got float\d+ of shape \(\)"):
            convert(value, array_type("f4", 1), WHERE)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (3, "f4", 3.0),
        (True, "i4", 1),
        (True, "?", True),
        (2.5, "bfloat16", 2.5),
        (1 + 2j, "c8", 1 + 2j),
        (7, "c16", 7),
        (200, "u1", 200),
        (2**64 - 1, "u8", 2**64 - 1),
        (2**64, "f4", float(2**64)),
        ([1, 2**63], "u8", [1, 2**63]),
        ([[1, 2], [3, 4.5]], "f4", [[1, 2], [3, 4.5]]),
        ([], "i4", []),
        ([np.float32(1), 2], "f8", [1, 2]),
        ([ml_dtypes.bfloat16(1.5)], "f4", [1.5]),
        ((1, 2), "i2", [1, 2]),
        (float("inf"), "f4", float("inf")),
    ],
)
def test_python_values(value: object, target: str, expected: object) -> None:
    result = convert(value, array_type(target, *np.shape(expected)), WHERE)
    assert result.dtype == np.dtype(target)
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("value", "target", "shape", "message"),
    [
        (1.5, "i4", (), "got float64 of shape .*: float64 is not converted to int32"),
        (1.0, "i4", (), "float64 is not converted to int32"),
        ([1, 2.0], "i4", (2,), "float64 is not converted to int32"),
        (1j, "f4", (), "complex128 is not converted to float32"),
        (1, "?", (), "int64 is not converted to bool"),
        (300, "i1", (), "300 does not fit in int8"),
        (-1, "u8", (), "-1 does not fit in uint64"),
        ([0, 2**70], "i8", (2,), f"{2**70} does not fit in int64"),
        (10**400, "f8", (), "got int that is not an array of numbers: int too large"),
        ([[1], [1, 2]], "f4", (2,), "got list that is not an array of numbers"),
        (["a"], "f4", (1,), "list holds no numbers"),
        (["a"], "?", (1,), "list holds no numbers"),
        ([None, 1.0], "f4", (2,), "list holds no numbers"),
        (None, "f4", (), "NoneType holds no numbers"),
        ({"a": 1}, "f4", (), "dict holds no numbers"),
        ({1.0}, "f4", (), "set holds no numbers"),
        ("1.5", "f4", (), "str holds no numbers"),
        (b"1234", "u1", (4,), "bytes holds no numbers"),
        (np.array(["a"]), "f4", (1,), "got str32 .*holds no numbers"),
        (np.array([1.0, None]), "f4", (2,), "got object .*holds no numbers"),
        (np.array([0], "M8[s]"), "i8", (1,), "got datetime64.*holds no numbers"),
        (np.array([0], "m8[s]"), "i8", (1,), "got timedelta64.*holds no numbers"),
        (np.zeros(1, [("a", "f4")]), "f4", (1,), "got void32 .*holds no numbers"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), "f4", (2,), r"masked array.*filled\(\)"),
        ([np.ma.array([1.0, 2.0], mask=[0, 1])], "f4", (1, 2), r"masked array.*filled\(\)"),
        ([1.0, np.ma.masked], "f4", (2,), r"masked array.*filled\(\)"),
    ],
)
def test_refused(value: object, target: str, shape: tuple[int, ...], message: str) -> None:
    wanted = array_type(target, *shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # NumPy's warning for the masked scalar
        with pytest.raises(ArgumentError, match=f"(?s){message}") as caught:
            convert(value, wanted, WHERE)
    assert f"{WHERE}: expected {wanted}, got " in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_big_endian_is_named_in_errors() -> None:
    with pytest.raises(ArgumentError, match=re.escape("got float32 (>f4) of shape (2,)")):
        convert(np.zeros(2, ">f4"), array_type("f4", 3), WHERE)


def test_floats_beyond_the_range_become_infinite_with_numpys_warning() -> None:
    with pytest.warns(RuntimeWarning, match="overflow"):
        result = convert(np.array([1e300]), array_type("f4", 1), WHERE)
    assert result[0] == np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert convert(np.array([np.inf]), array_type("f4", 1), WHERE)[0] == np.inf


class WithArray:
    def __init__(self, values: np.ndarray | Exception) -> None:
        self.values = values

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        if isinstance(self.values, Exception):
            raise self.values
        return self.values


class WithDlpack:
    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: object) -> object:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> object:
        return self.values.__dlpack_device__()


@pytest.mark.parametrize(
    "value",
    [
        np.ones((1, 2)).view(np.matrix) * [[1.0, 0.0], [0.0, 2.0]],
        np.array([[1.0, 2.0]], order="F"),
        WithArray(np.array([[1.0, 2.0]])),
        WithDlpack(np.array([[1.0, 2.0]])),
        memoryview(np.array([[1.0, 2.0]])),
    ],
)
def test_array_likes(value: object) -> None:
    result = convert(value, array_type("f4", 1, 2), WHERE)
    assert type(result) is np.ndarray
    assert result.tolist() == [[1, 2]]


def test_buffers_and_ranges() -> None:
    assert convert(array.array("d", [1, 2]), array_type("f4", 2), WHERE).tolist() == [1, 2]
    assert convert(bytearray(b"ab"), array_type("u1", 2), WHERE).tolist() == [97, 98]
    assert convert(range(3), array_type("i4", 3), WHERE).tolist() == [0, 1, 2]


def test_the_exception_of_a_foreign_array_is_the_cause() -> None:
    foreign = WithArray(RuntimeError("tensor requires grad"))
    with pytest.raises(
        ArgumentError, match=r"got WithArray that NumPy cannot read.*grad"
    ) as caught:
        convert(foreign, array_type("f4", 1), WHERE)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_jax_arrays() -> None:
    values = jax.numpy.array([1, 2], dtype="bfloat16")
    assert convert(values, array_type("f4", 2), WHERE).tolist() == [1, 2]
    key = jax.random.key(7)
    words = jax.random.key_data(key).tolist()
    assert convert(key, array_type("u4", 2), WHERE).tolist() == words
    with pytest.raises(ArgumentError, match="NumPy cannot read"):
        jax.jit(lambda x: convert(x, array_type("f4", 2), WHERE))(values)
