# SPDX-License-Identifier: Apache-2.0
"""Invalid and hostile arguments of `run`, `out` and `bind`: the right result or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import cyxla
from cyxla.errors import ArgumentError
from support.arrays import build

_X = np.arange(4, dtype="f4")
_WANTED = [0, 2, 4, 6]


class _With:
    """An object with the given attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class _Array:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return self.answer() if callable(self.answer) else self.answer


class _Dlpack:
    def __init__(self, answer: Any, device: Any = (1, 0)) -> None:
        self.answer, self.device = answer, device

    def __dlpack__(self, **_: object) -> Any:
        return self.answer() if callable(self.answer) else self.answer

    def __dlpack_device__(self) -> Any:
        return self.device


class _Sequence:
    """A sequence with a wrong length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> float:
        if index >= 3:
            raise IndexError
        return 1.0


class _BrokenSubclass(np.ndarray):  # type: ignore[type-arg]
    def __array__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("no")

    def __getitem__(self, key: object) -> Any:
        raise RuntimeError("no")

    @property
    def shape(self) -> Any:
        return (400,)

    @property
    def flags(self) -> Any:
        raise RuntimeError("no")


def _interface(**changes: Any) -> _With:
    return _With(
        __array_interface__={
            "version": 3,
            "shape": (4,),
            "typestr": "<f4",
            "data": bytes(16),
            **changes,
        }
    )


def _raise() -> Any:
    raise ZeroDivisionError("on purpose")


def _recursive() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def _released() -> memoryview:
    view = memoryview(_X.copy())
    view.release()
    return view


_WRONG_INPUTS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "object": lambda: np.array([1, None, 2, 3], object),
    "object of numbers": lambda: np.array([1, 2, 3, "4"], object),
    "text": lambda: np.array(["1", "2", "3", "4"]),
    "bytes": lambda: np.array([b"1", b"2", b"3", b"4"]),
    "void": lambda: np.zeros(4, "V4"),
    "structure": lambda: np.zeros(4, [("a", "f4")]),
    "datetime": lambda: np.zeros(4, "M8[s]"),
    "masked": lambda: np.ma.array(_X, mask=[0, 1, 0, 0]),
    "scalar": lambda: np.float32(1),
    "broadcastable": lambda: np.ones((1, 4), "f4"),
    "rows": lambda: np.ones((4, 3), "f4"),
    "short": lambda: _X[:3],
    "long": lambda: np.ones(5, "f4"),
    "huge": lambda: as_strided(np.ones(1, "f4"), (2**40,), (0,)),
    "huge in many dimensions": lambda: as_strided(
        np.ones(1, "f4"), (2**15, 2**15, 2**15), (0,) * 3
    ),
    "empty": lambda: np.ones(0, "f4"),
    "ragged list": lambda: [1, [2], 3, 4],
    "deep list": lambda: [[[[[[1]]]]]] * 4,
    "list in itself": _recursive,
    "set": lambda: {1, 2, 3, 4},
    "dict": lambda: dict.fromkeys(range(4)),
    "generator": lambda: (x for x in range(4)),
    "number": lambda: 3,
    "complex": lambda: np.ones(4, "c8"),
    "double complex list": lambda: [1j, 2, 3, 4],
    "list of ints too large": lambda: [10**400, 1, 2, 3],
    "__array__ raises": lambda: _Array(_raise),
    "__array__ gives none": lambda: _Array(None),
    "__array__ gives text": lambda: _Array("1234"),
    "__array__ gives another shape": lambda: _Array(np.ones(3, "f4")),
    "interface without shape": lambda: _interface(shape=None),
    "interface with negative shape": lambda: _interface(shape=(-4,)),
    "interface larger than its data": lambda: _interface(shape=(2**40,)),
    "interface of another type": lambda: _interface(typestr="<q9"),
    "interface is not a dict": lambda: _With(__array_interface__=3),
    "dlpack raises": lambda: _Dlpack(_raise),
    "dlpack gives none": lambda: _Dlpack(None),
    "dlpack gives another capsule": lambda: _Dlpack(cyxla._runtime._C_API),
    "length is a lie": lambda: _Sequence(4),
    "length is negative": lambda: _Sequence(-1),
    "length is huge": lambda: _Sequence(2**62),
    "type": lambda: np.ndarray,
    "memoryview of text": lambda: memoryview(b"1234").cast("c"),
    "released memoryview": _released,
}


_RIGHT_INPUTS: dict[str, Callable[[], Any]] = {
    "list": lambda: [0, 1, 2, 3],
    "double": lambda: _X.astype("f8"),
    "big-endian": lambda: _X.astype(">f4"),
    "read-only": lambda: np.frombuffer(_X.tobytes(), "f4"),
    "reversed": lambda: _X[::-1].copy()[::-1],
    "spread": lambda: np.repeat(_X, 1000)[::1000],
    "unaligned": lambda: np.frombuffer(b"." + _X.tobytes(), "f4", offset=1),
    "memoryview": lambda: memoryview(_X),
    "interface": lambda: _interface(data=_X.tobytes()),
    "dlpack": lambda: _Dlpack(_X.__dlpack__),
    "dlpack that names another device": lambda: _Dlpack(_X.__dlpack__, (2, 0)),
    "dlpack that names no device": lambda: _Dlpack(_X.__dlpack__, None),
    "subclass that is broken": lambda: _X.view(_BrokenSubclass),
}


@pytest.fixture(scope="module")
def double() -> cyxla.Executable:
    """The program x -> 2 x on four floats."""
    return build(lambda x: 2 * x, ((4,), "f4"))


def _works(executable: cyxla.Executable) -> None:
    assert executable.run([_X])[0].tolist() == _WANTED


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", _WRONG_INPUTS)
def test_a_wrong_input_is_an_error(double: cyxla.Executable, kind: str) -> None:
    with pytest.raises(ArgumentError, match="argument 0"):
        double.run([_WRONG_INPUTS[kind]()])
    with pytest.raises(ArgumentError, match="argument 0"):
        double.bind([_WRONG_INPUTS[kind]()])
    _works(double)


@pytest.mark.filterwarnings("ignore::cyxla.NarrowingWarning")
@pytest.mark.parametrize("kind", _RIGHT_INPUTS)
def test_any_layout_gives_the_right_result(double: cyxla.Executable, kind: str) -> None:
    assert double.run([_RIGHT_INPUTS[kind]()])[0].tolist() == _WANTED


@pytest.mark.parametrize("arrays", [None, 3, "x", _X, {0: _X}, iter([_X]), [], [_X, _X], ((_X,),)])
def test_invalid_lists_of_inputs(double: cyxla.Executable, arrays: Any) -> None:
    with pytest.raises(ArgumentError, match=r"argument|expected 1"):
        double.run(arrays)
    with pytest.raises(ArgumentError, match=r"argument|expected 1"):
        double.bind(arrays)
    _works(double)


_WRONG_OUTPUTS: dict[str, Callable[[], Any]] = {
    "read-only": lambda: np.frombuffer(bytes(16), "f4"),
    "double": lambda: np.empty(4),
    "big-endian": lambda: np.empty(4, ">f4"),
    "integers": lambda: np.empty(4, "i4"),
    "short": lambda: np.empty(3, "f4"),
    "long": lambda: np.empty(5, "f4"),
    "two dimensions": lambda: np.empty((2, 2), "f4"),
    "rows": lambda: np.empty((4, 3), "f4"),
    "no dimensions": lambda: np.empty((), "f4"),
    "spread": lambda: np.empty(8, "f4")[::2],
    "reversed": lambda: np.empty(4, "f4")[::-1],
    "broadcast": lambda: np.broadcast_to(np.float32(0), (4,)),
    "one address": lambda: as_strided(np.empty(1, "f4"), (4,), (0,)),
    "huge strides": lambda: as_strided(np.empty(1, "f4"), (4,), (2**60,), writeable=False),
    "subclass": lambda: np.empty(4, "f4").view(_BrokenSubclass),
    "masked": lambda: np.ma.empty(4, "f4"),
    "list": lambda: [0.0] * 4,
    "memoryview": lambda: memoryview(np.empty(4, "f4")),
    "bytearray": lambda: bytearray(16),
    "object": lambda: np.empty(4, object),
    "interface": lambda: _interface(data=bytearray(16)),
}


@pytest.mark.parametrize("kind", _WRONG_OUTPUTS)
def test_a_wrong_output_is_an_error(double: cyxla.Executable, kind: str) -> None:
    with pytest.raises(ArgumentError, match="output 0"):
        double.run([_X], out=[_WRONG_OUTPUTS[kind]()])
    with pytest.raises(ArgumentError, match="output 0"):
        double.bind([_X], [_WRONG_OUTPUTS[kind]()])
    _works(double)


def test_outputs_that_share_memory() -> None:
    both = build(lambda x: (x + 1, x - 1), ((4,), "f4"))
    memory = np.zeros(8, "f4")
    for first, second in ((memory[:4], memory[:4]), (memory[:4], memory[3:7])):
        for call in (both.bind, lambda x, out: both.run(x, out=out)):
            with pytest.raises(ArgumentError, match="output 0 and output 1 share memory"):
                call([_X], [first, second])
    # A call may overwrite its inputs.
    for call in (both.bind, lambda x, out: lambda: both.run(x, out=out)):
        memory[:4] = _X
        call([memory[:4]], [memory[:4], memory[4:]])()
        assert memory.tolist() == [1, 2, 3, 4, -1, 0, 1, 2]


def test_a_conversion_that_changes_the_other_arguments() -> None:
    add = build(lambda x, y: x + y, ((4,), "f4"), ((4,), "f4"))
    first = _X.copy()
    arguments: list[Any] = [first, None]

    def disturb() -> Any:
        arguments.clear()
        first.resize(1 << 20, refcheck=False)  # its memory is freed
        return _X

    arguments[1] = _Array(disturb)
    with pytest.raises(ArgumentError, match="argument 0"):
        add.run(arguments)
    assert add.run([_X, _X])[0].tolist() == _WANTED
