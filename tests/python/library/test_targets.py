# SPDX-License-Identifier: Apache-2.0
"""Libraries for other machines, executed by emulators: the numbers are this machine's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import wasmtime

import cyxla
from cyxla.library.verify import difference
from support.programs.functions import rosenbrock, runge_kutta
from support.targets import TARGETS, Runner

NUM_SETS = 24


def robertson(y: Any) -> Any:
    def rate(y: Any) -> Any:
        first, second = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return jnp.stack([-first, first - second, second])

    return rate(y), jax.jacfwd(rate)(y)


def counts(i: Any, x: Any) -> Any:
    return jax.lax.switch(i, [lambda x: x * x, jnp.cumsum, lambda x: x[::-1] + 1], x), x > 0


# Those that call the mathematics library, whose functions differ in the last bit: with tolerances.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Sequence[tuple[Any, str]], float]] = {
    "rosenbrock": (jax.value_and_grad(rosenbrock), [((7,), "f8")], 0),
    "robertson": (robertson, [((3,), "f8")], 0),
    "product": (lambda a, x: jnp.tanh(a @ x), [((8, 8), "f4"), ((8,), "f4")], 0),
    "counts": (counts, [((), "i4"), ((5,), "f4")], 0),
    "roots": (lambda x: (jnp.sqrt(x), x.astype("i2"), x / 3), [((6,), "f4")], 0),
    "pendulum": (runge_kutta, [((2,), "f8")], 1e-12),
}


class Case(NamedTuple):
    """A function with its inputs, and what the plugin makes of them."""

    program: cyxla.Program
    inputs: list[list[Any]]
    wanted: list[list[Any]]


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    rng = np.random.default_rng(14)
    return {name: case(name, rng) for name in FUNCTIONS}


def case(name: str, rng: np.random.Generator) -> Case:
    function, shapes, _ = FUNCTIONS[name]
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    program = cyxla.lower(function, arguments, platform="cpu", name=name)
    executable = cyxla.compile_program(program, exact=True).executable
    inputs = [
        [
            np.asarray(rng.normal(size=each.shape) * 10.0 ** (number % 3)).astype(each.dtype)
            for each in program.inputs
        ]
        for number in range(NUM_SETS)
    ]
    wanted = [[np.array(each) for each in executable.run(arrays)] for arrays in inputs]
    return Case(program, inputs, wanted)


def assert_equal(name: str, wanted: Any, found: Any) -> None:
    if tolerance := FUNCTIONS[name][2]:
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    else:
        assert difference(wanted, found) == ""


@pytest.fixture(scope="module", params=TARGETS, ids=lambda target: target.triple)
def runner(
    request: pytest.FixtureRequest, cases: dict[str, Case], tmp_path_factory: pytest.TempPathFactory
) -> Runner:
    programs = {name: case.program for name, case in cases.items()}
    return Runner(request.param, programs, tmp_path_factory.mktemp(request.param.triple))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_numbers_are_this_machines(runner: Runner, cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    for outputs, found in zip(case.wanted, runner.run(name, case.inputs), strict=True):
        for wanted, each in zip(outputs, found, strict=True):
            assert_equal(name, wanted, each)


class Module:
    """A WebAssembly module; its memory grows as a browser's would."""

    def __init__(self, path: Path) -> None:
        libm = ctypes.CDLL("libm.so.6")
        self.store = wasmtime.Store()
        module = wasmtime.Module(self.store.engine, path.read_bytes())
        imports = []
        for each in module.imports:
            function = getattr(libm, each.name)
            type_ = {"f64": ctypes.c_double, "f32": ctypes.c_float}[str(each.type.results[0])]
            function.restype, function.argtypes = type_, [type_] * len(each.type.params)
            imports.append(wasmtime.Func(self.store, each.type, function))
        self.exports = wasmtime.Instance(self.store, module, imports).exports(self.store)
        self.memory = self.exports["memory"]

    def place(self, arrays: Sequence[Any]) -> Iterator[int]:
        """Write arrays into new memory, and yield the address of each."""
        size = sum(-(-array.nbytes // 64) * 64 for array in arrays)
        address = self.memory.data_len(self.store)
        self.memory.grow(self.store, -(-size // 65536))
        for array in arrays:
            self.memory.write(self.store, array.tobytes(), address)
            yield address
            address += -(-array.nbytes // 64) * 64

    def read(self, address: int, like: Any) -> Any:
        data = self.memory.read(self.store, address, address + like.nbytes)
        return np.frombuffer(bytes(data), like.dtype).reshape(like.shape)


@pytest.fixture(scope="module")
def web(cases: dict[str, Case], tmp_path_factory: pytest.TempPathFactory) -> Module:
    path = tmp_path_factory.mktemp("wasm") / "library.wasm"
    programs = {name: case.program for name, case in cases.items()}
    return Module(cyxla.build_library(programs, path, target="wasm32-unknown-unknown").path)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_webassembly(web: Module, cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    for inputs, outputs in zip(case.inputs, case.wanted, strict=True):
        addresses = list(web.place([*inputs, *outputs]))
        web.exports[name](web.store, *addresses)
        for address, wanted in zip(addresses[len(inputs) :], outputs, strict=True):
            assert_equal(name, wanted, web.read(address, wanted))
