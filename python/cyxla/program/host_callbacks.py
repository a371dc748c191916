# SPDX-License-Identifier: Apache-2.0
"""Python functions that programs call while they execute, through `jax.pure_callback` for example.

A program refers to a function by a number that is unique in this process. The Program and its
executables own the functions; this module holds weak references to them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

import numpy as np

from cyxla.dtypes import AnyArray, AnyDtype, cast
from cyxla.errors import Error, UnsupportedError, counted, refuse_reload

__all__ = ["Failure", "HostCallback", "HostCallbacks", "answer", "known_callbacks"]

refuse_reload(__name__, "_numbers" in globals())


class HostCallback:
    """One function, its number in the program, and the source line of the call."""

    def __init__(self, function: Callable[..., Any], where: str) -> None:
        self.function: Final = function
        self.where: Final = where
        self.number: Final = next(_numbers)
        _callbacks[self.number] = self


class HostCallbacks:
    """The functions of one program; copied by reference and never pickled."""

    def __init__(self, program: str, callbacks: Sequence[HostCallback]) -> None:
        self.program: Final = program
        self.callbacks: Final = tuple(callbacks)

    def __deepcopy__(self, memo: dict[int, Any]) -> HostCallbacks:
        return self

    def __copy__(self) -> HostCallbacks:
        return self

    def __reduce__(self) -> NoReturn:
        self.refuse_to_leave()

    def refuse_to_leave(self) -> NoReturn:
        """Raise UnsupportedError: the functions exist in this process only."""
        raise UnsupportedError(
            f"program {self.program!r} calls Python functions of this process"
            f" ({'; '.join(callback.where for callback in self.callbacks)}), so it cannot be saved"
            " or pickled; lower the function in the process that runs it, or remove the callbacks"
        )


class Failure(NamedTuple):
    """The exception that a function raised, and its text in the execution's error."""

    error: BaseException
    text: str


# The dtype and shape of one result; a dtype of None stands for a token.
_Expected: TypeAlias = tuple[AnyDtype | None, tuple[int, ...]]

_numbers: Final = itertools.count(1)
_callbacks: Final[weakref.WeakValueDictionary[int, HostCallback]] = weakref.WeakValueDictionary()


def known_callbacks() -> int:
    """Return the number of functions whose programs are alive."""
    return len(_callbacks)


def answer(
    number: int, arguments: tuple[AnyArray | None, ...], expected: tuple[_Expected, ...]
) -> tuple[AnyArray | None, ...] | Failure:
    """Call a function and return its C-contiguous results, or a Failure for any exception.

    `arguments` and the results have None for tokens.
    """
    callback = _callbacks.get(number)
    where = f"number {number}" if callback is None else callback.where
    try:
        if callback is None:
            raise Error("its program is from another process or was freed; lower it again")
        return _checked(callback.function(*arguments), expected)
    except BaseException as error:  # re-raised for the program's caller, after the plugin returns
        kind = type(error).__name__
        return Failure(error, f"{kind} in the host callback {where}: {_text_of(error)}")


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as failed:
        return f"(its __str__ raised {type(failed).__name__})"


def _checked(results: Any, expected: tuple[_Expected, ...]) -> tuple[AnyArray | None, ...]:
    if not isinstance(results, tuple) or len(results) != len(expected):
        got = f"{len(results)}" if isinstance(results, tuple) else type(results).__name__
        raise TypeError(f"it must return a tuple of {counted(len(expected), 'array')}, not {got}")
    return tuple(map(_checked_array, range(len(expected)), results, expected))


def _checked_array(index: int, result: Any, expected: _Expected) -> AnyArray | None:
    dtype, shape = expected
    if dtype is None:
        return None
    array = np.asarray(result)
    if array.dtype != dtype or array.shape != shape:
        raise TypeError(
            f"result {index} must be {dtype.name} of shape {shape}, not"
            f" {array.dtype.name} of shape {array.shape}"
        )
    return cast(array, dtype)
