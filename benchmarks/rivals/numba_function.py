# SPDX-License-Identifier: Apache-2.0
"""Numba: derivatives by hand in Python, compiled; called from C as a cfunc and from Python."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from case import Case
from loops import NativeLoop, PythonLoop, pointers
from rivals import NotApplicableError, Rival


@functools.cache
def _functions() -> SimpleNamespace:
    """The tasks; each function takes its inputs, then its outputs."""
    from numba import njit

    @njit
    def rosenbrock(x: Any, value: Any, gradient: Any) -> None:
        total = 0.0
        gradient[0] = 0.0
        for i in range(x.size - 1):
            curve, rest = x[i + 1] - x[i] * x[i], 1 - x[i]
            total += 100 * curve * curve + rest * rest
            gradient[i] += -400 * x[i] * curve - 2 * rest
            gradient[i + 1] = 200 * curve
        value[()] = total

    @njit
    def hs71(
        x: Any, scale: Any, multipliers: Any, value: Any, gradient: Any, constraints: Any,
        jacobian: Any, hessian: Any,
    ) -> None:  # fmt: skip
        a, b, c, d = x[0], x[1], x[2], x[3]
        total, s, m0, m1 = a + b + c, scale[()], multipliers[0], multipliers[1]
        value[()] = a * d * total + c
        gradient[0], gradient[1] = d * (total + a), a * d
        gradient[2], gradient[3] = a * d + 1, a * total
        constraints[0], constraints[1] = a * b * c * d, a * a + b * b + c * c + d * d
        jacobian[0, 0], jacobian[0, 1] = b * c * d, a * c * d
        jacobian[0, 2], jacobian[0, 3] = a * b * d, a * b * c
        for i in range(4):
            jacobian[1, i] = 2 * x[i]
            hessian[i, i] = 2 * m1
        hessian[0, 0] += s * 2 * d
        hessian[0, 1] = hessian[1, 0] = s * d + m0 * c * d
        hessian[0, 2] = hessian[2, 0] = s * d + m0 * b * d
        hessian[0, 3] = hessian[3, 0] = s * (total + a) + m0 * b * c
        hessian[1, 2] = hessian[2, 1] = m0 * a * d
        hessian[1, 3] = hessian[3, 1] = s * a + m0 * a * c
        hessian[2, 3] = hessian[3, 2] = s * a + m0 * a * b

    @njit
    def robertson(y: Any, rate: Any, jacobian: Any) -> None:
        slow, middle, fast = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]
        rate[0], rate[1], rate[2] = middle - slow, slow - middle - fast, fast
        jacobian[0, 0], jacobian[0, 1], jacobian[0, 2] = -0.04, 1e4 * y[2], 1e4 * y[1]
        jacobian[1, 0], jacobian[1, 2] = 0.04, -1e4 * y[1]
        jacobian[1, 1] = -1e4 * y[2] - 6e7 * y[1]
        jacobian[2, 0], jacobian[2, 1], jacobian[2, 2] = 0.0, 6e7 * y[1], 0.0

    @njit
    def perceptron(
        w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, target: Any, loss: Any,
        dw1: Any, db1: Any, dw2: Any, db2: Any, dw3: Any, db3: Any,
    ) -> None:  # fmt: skip
        hidden1 = np.tanh(x @ w1 + b1)
        hidden2 = np.tanh(hidden1 @ w2 + b2)
        error = hidden2 @ w3 + b3 - target
        loss[()] = np.sum(error * error) / np.float32(error.size)
        delta = error * np.float32(2.0 / error.size)
        dw3[:], db3[:] = hidden2.T @ delta, delta.sum(axis=0)
        delta = (delta @ w3.T) * (np.float32(1) - hidden2 * hidden2)
        dw2[:], db2[:] = hidden1.T @ delta, delta.sum(axis=0)
        delta = (delta @ w2.T) * (np.float32(1) - hidden1 * hidden1)
        dw1[:], db1[:] = x.T @ delta, delta.sum(axis=0)

    @njit
    def tanh_product(a: Any, x: Any, out: Any) -> None:
        out[:] = np.tanh(a @ x)

    @njit
    def twice_sine(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = np.sin(x[i]) * np.float32(2)

    @njit
    def scale_and_shift(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = x[i] * np.float32(2) + np.float32(1)

    return SimpleNamespace(**{name: value for name, value in locals().items() if name != "njit"})


_NAMES = {
    "rosenbrock-2": "rosenbrock",
    "rosenbrock-100": "rosenbrock",
    "hs71": "hs71",
    "robertson": "robertson",
    "mlp": "perceptron",
    "tanh-64": "tanh_product",
    "sin-3": "twice_sine",
    "elementwise-1e7": "scale_and_shift",
}


def _function_of(case: Case) -> Callable[..., None]:
    if case.task.name not in _NAMES:
        raise NotApplicableError("not written for Numba")
    function: Callable[..., None] = getattr(_functions(), _NAMES[case.task.name])
    return function


def _from_c(case: Case) -> NativeLoop:
    import numba

    function = _function_of(case)
    outputs = case.new_outputs()
    arrays = [*case.inputs, *outputs]
    # A cfunc takes pointers, and its source contains the shapes of its arrays.
    views = [
        f"carray(arrays[{i}], {array.shape!r}, np.{array.dtype.name})"
        for i, array in enumerate(arrays)
    ]
    text = f"def step(arrays):\n    function({', '.join(views)})\n    return 0\n"
    names: dict[str, Any] = {"function": function, "carray": numba.carray, "np": np}
    exec(text, names)
    signature = numba.types.intc(numba.types.CPointer(numba.types.voidptr))
    step = numba.cfunc(signature)(names["step"])
    addresses = pointers(arrays)
    return NativeLoop(step.address, ctypes.addressof(addresses), outputs, keep=(step, addresses))


def _from_python(case: Case) -> PythonLoop:
    function = _function_of(case)
    outputs = case.new_outputs()
    arrays = (*case.inputs, *outputs)

    def call() -> list[Any]:
        function(*arrays)
        return outputs

    return PythonLoop(call)


RIVALS = (
    Rival("numba-cfunc", "Numba cfunc, by hand", "C", _from_c),
    Rival("numba-njit", "Numba njit, by hand", "Python", _from_python),
)
