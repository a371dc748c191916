# SPDX-License-Identifier: Apache-2.0
"""CasADi: its virtual machine from Python in two ways, and its generated C code from C."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from case import Case
from loops import NativeLoop, PythonLoop
from native_build import address_of, generated_source, load_library
from rivals import NotApplicableError, Rival
from tasks import Array

# CasADi's matrices are column-major, so each matrix here is the transpose of the row-major one in
# the same memory.


def _rosenbrock(x: Any) -> list[Any]:
    import casadi as ca

    value = ca.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    return [value, ca.gradient(value, x)]


def _hs71(x: Any, scale: Any, multipliers: Any) -> list[Any]:
    import casadi as ca

    value = x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    constraints = ca.vertcat(x[0] * x[1] * x[2] * x[3], ca.sumsqr(x))
    hessian, _ = ca.hessian(scale * value + ca.dot(multipliers, constraints), x)
    jacobian = ca.jacobian(constraints, x)
    return [value, ca.gradient(value, x), constraints, jacobian.T, hessian]


def _robertson(y: Any) -> list[Any]:
    import casadi as ca

    slow, fast, middle = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
    rate = ca.vertcat(middle - slow, slow - middle - fast, fast)
    return [rate, ca.jacobian(rate, y).T]


def _perceptron(*arrays: Any) -> list[Any]:
    import casadi as ca

    w1, b1, w2, b2, w3, b3, x, target = arrays
    hidden = ca.tanh(w2 @ ca.tanh(w1 @ x + b1) + b2)
    loss = ca.sumsqr(w3 @ hidden + b3 - target) / target.numel()
    return [loss, *(ca.gradient(loss, parameter) for parameter in (w1, b1, w2, b2, w3, b3))]


def _tanh_product(a: Any, x: Any) -> list[Any]:
    import casadi as ca

    return [ca.tanh(a.T @ x)]


def _twice_sine(x: Any) -> list[Any]:
    import casadi as ca

    return [ca.sin(x) * 2]


# Scalar expressions for the small tasks, matrix expressions where there are matrix products.
_BUILDERS: dict[str, tuple[str, Callable[..., list[Any]]]] = {
    "rosenbrock-2": ("SX", _rosenbrock),
    "rosenbrock-100": ("SX", _rosenbrock),
    "hs71": ("SX", _hs71),
    "robertson": ("SX", _robertson),
    "mlp": ("MX", _perceptron),
    "tanh-64": ("MX", _tanh_product),
    "sin-3": ("SX", _twice_sine),
}


@functools.cache
def _function_of(name: str, shapes: tuple[tuple[int, ...], ...]) -> Any:
    import casadi as ca

    if name not in _BUILDERS:
        raise NotApplicableError("not written for CasADi")
    kind, build = _BUILDERS[name]
    symbols = [
        getattr(ca, kind).sym(f"x{i}", *(shape[::-1] or (1,))) for i, shape in enumerate(shapes)
    ]
    outputs = [ca.densify(output) for output in build(*symbols)]
    return ca.Function("task", symbols, outputs)


def _function(case: Case) -> Any:
    return _function_of(case.task.name, tuple(array.shape for array in case.inputs))


class _DoubleLoop(PythonLoop):
    """The virtual machine has double precision only; float32 inputs are converted untimed."""

    def __init__(
        self,
        case: Case,
        doubles: list[Array],
        function: Callable[[], list[Array]],
        keep: Any = None,
    ) -> None:
        self._case = case
        self._doubles = doubles
        self._keep = keep
        super().__init__(function)

    def seconds(self, calls: int) -> float:
        self._case.refresh(self._doubles)
        return super().seconds(calls)


class _FullLoop(_DoubleLoop):
    """The results are transposed matrices."""

    def outputs(self) -> list[Array]:
        return [
            output.T.reshape(shape.shape)
            for output, shape in zip(super().outputs(), self._case.output_shapes, strict=True)
        ]


def _call(case: Case) -> PythonLoop:
    function = _function(case)
    doubles = [np.array(array, np.float64) for array in case.inputs]
    transposed = [array.T for array in doubles]
    several = len(case.output_shapes) > 1

    def call() -> list[Array]:
        results = function(*transposed)
        return [result.full() for result in (results if several else [results])]

    return _FullLoop(case, doubles, call)


def _buffer(case: Case) -> PythonLoop:
    buffer, evaluate = _function(case).buffer()
    doubles = [np.array(array, np.float64) for array in case.inputs]
    outputs = [np.full(shape.shape, np.nan) for shape in case.output_shapes]
    for i, array in enumerate(doubles):
        buffer.set_arg(i, memoryview(array.reshape(-1)))
    for i, array in enumerate(outputs):
        buffer.set_res(i, memoryview(array.reshape(-1)))

    def call() -> list[Array]:
        evaluate()
        return outputs

    # evaluate() does not keep the buffer and the arrays alive.
    return _DoubleLoop(case, doubles, call, keep=(buffer, outputs))


_ADAPTER = """
int task(const casadi_real** arg, casadi_real** res, long long int* iw, casadi_real* w, int mem);

struct state {
  const casadi_real** arg;
  casadi_real** res;
  long long int* iw;
  casadi_real* w;
};

int step(void* state) {
  const struct state* own = (const struct state*)state;
  return task(own->arg, own->res, own->iw, own->w, 0);
}
"""


def _generated(case: Case) -> NativeLoop:
    import casadi as ca

    function = _function(case)
    real = "float" if np.dtype(case.task.dtype) == np.float32 else "double"
    generator = ca.CodeGenerator("task", {"casadi_real": real})
    generator.add(function)
    source = generated_source(f"casadi_{case.task.name}.c", generator.dump() + _ADAPTER)
    library = load_library(source)
    outputs = case.new_outputs()
    # The work vectors may be longer than the number of inputs, outputs and temporaries.
    arg = (ctypes.c_void_p * function.sz_arg())(*[a.ctypes.data for a in case.inputs])
    res = (ctypes.c_void_p * function.sz_res())(*[a.ctypes.data for a in outputs])
    iw = np.zeros(function.sz_iw() + 1, np.int64)
    w = np.zeros(function.sz_w() + 1, case.task.dtype)
    state = (ctypes.c_void_p * 4)(
        ctypes.addressof(arg), ctypes.addressof(res), iw.ctypes.data, w.ctypes.data
    )
    keep = (arg, res, iw, w, state, library)
    return NativeLoop(address_of(library.step), ctypes.addressof(state), outputs, keep=keep)


RIVALS = (
    Rival("casadi-c", "CasADi generated C, -O3", "C", _generated),
    Rival("casadi-buffer", "CasADi VM, bound buffers", "Python", _buffer),
    Rival("casadi-vm", "CasADi VM", "Python", _call),
)
