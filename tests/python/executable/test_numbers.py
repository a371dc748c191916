# SPDX-License-Identifier: Apache-2.0
"""Results do not depend on the caller's floating-point state, nor change it; subnormal numbers are
zero, and a one-thread program gives the same bits every time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from cpu_plugins import CPU_LIBRARIES
from support.arrays import Array, addresses, empty_outputs, place
from support.cycles import compiled, inputs_of
from support.native import import_module, run_tests_on_plugin

# Bits of MXCSR (all exceptions masked; rounding down, up, to zero; subnormal results and operands
# become zero; flags that are already set), and the x87 control word.
_MASKED, _X87 = 0x1F80, 0x037F
_STATES = {
    "usual": (_MASKED, _X87),
    "down": (_MASKED | 0x2000, 0x077F),
    "up": (_MASKED | 0x4000, 0x0B7F),
    "to zero": (_MASKED | 0x6000, 0x0F7F),
    "up in MXCSR alone": (_MASKED | 0x4000, _X87),
    "up in the x87 unit alone": (_MASKED, 0x0B7F),
    "x87 in single precision": (_MASKED, 0x007F),
    "flush": (_MASKED | 0x8040, _X87),
    "flags": (_MASKED | 0x003F, _X87),
    "one flag": (_MASKED | 0x6001, 0x0F7F),
    "everything traps": (0x0000, 0x0340),
    "traps and rounding up": (0x4000, 0x0B40),
}
_TRAPS_BUT_INEXACT = (0x1100, 0x0B70)  # Python itself needs inexact, denormal and underflow


@pytest.fixture(scope="module")
def floating_point(modules: Path) -> ModuleType:
    """The module floating_point."""
    return import_module(modules, "floating_point")


@pytest.fixture(scope="module")
def executables() -> dict[tuple[str, str], cyxla.Executable]:
    """Programs on each route."""
    names = ("rosenbrock", "heat")
    return {(name, route): compiled(name, route) for name in names for route in ("pjrt", "direct")}


@pytest.mark.parametrize("state", _STATES)
@pytest.mark.parametrize("route", ["pjrt", "direct"])
@pytest.mark.parametrize("name", ["rosenbrock", "heat"])
def test_the_callers_floating_point_state_stays_and_does_not_matter(
    floating_point: ModuleType,
    executables: dict[tuple[str, str], cyxla.Executable],
    name: str,
    route: str,
    state: str,
) -> None:
    executable = executables[name, route]
    mxcsr, x87 = _STATES[state]
    outputs = empty_outputs(executable)
    destinations = tuple(addresses(outputs))
    for zero_copy in (False, True):
        for values in inputs_of(name):
            wanted = [array.tobytes() for array in executables[name, "pjrt"].run([values])]
            data = place(values)
            done = floating_point.execute(
                executable, data.ctypes.data, destinations, zero_copy, mxcsr, x87
            )
            assert done == (0, mxcsr, x87, 0)
            assert [output.tobytes() for output in outputs] == wanted
            # The message of an error is formatted in the caller's state.
            failed = floating_point.execute(executable, 0, destinations, zero_copy, mxcsr, x87)
            assert failed == (-1, mxcsr, x87, 0)


def _folded(x: Any) -> Any:
    """Constants that a compiler computes."""
    constants = jnp.asarray(np.linspace(0.1, 3.3, 11, dtype="f4"))
    exact = jnp.asarray(np.full(11, 1, "f4")) / constants + jnp.sin(constants) + constants**3 / 7
    return x + exact, x + jnp.log(constants * 0), jnp.sqrt(-constants) + x


@pytest.mark.parametrize(
    "state", [_STATES["up"], _STATES["down"], _STATES["flags"], _TRAPS_BUT_INEXACT]
)
def test_compiled_code_does_not_depend_on_the_callers_state(
    floating_point: ModuleType, state: tuple[int, int]
) -> None:
    program = cyxla.lower(_folded, [jax.ShapeDtypeStruct((11,), "f4")])
    x = np.zeros(11, "f4")
    for route in ("pjrt", "auto"):
        usual, _ = cyxla.compile_program(program, route=route)

        def compile_it(route: str = route) -> cyxla.Executable:
            return cyxla.compile_program(program, route=route)[0]

        odd, *after = floating_point.call(compile_it, *state)
        masks_and_modes = 0xFFC0  # Python may raise flags
        assert after[0] & masks_and_modes == state[0] & masks_and_modes
        assert after[1] == state[1]
        for wanted, got in zip(usual.run([x]), odd.run([x]), strict=True):
            assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("route", ["pjrt", "direct"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_subnormal_numbers_are_zero(
    floating_point: ModuleType, modules: Path, dtype: str, route: str
) -> None:
    # Operands and results, with their sign; copies are unchanged.
    with jax.enable_x64(True):
        program = cyxla.lower(lambda x: (x * 2, x / 4, x), [jax.ShapeDtypeStruct((6,), dtype)])
    executable, _ = cyxla.compile_program(program, route=route)
    tiny = np.finfo(dtype).tiny
    x = place(np.array([tiny, -tiny, tiny / 2, -tiny / 2, 8 * tiny, 1], dtype))
    doubled = np.array([2 * tiny, -2 * tiny, 0, -0.0, 16 * tiny, 2], dtype)
    quartered = np.array([0, -0.0, 0, -0.0, 2 * tiny, 0.25], dtype)
    wanted = [array.tobytes() for array in (doubled, quartered, x)]
    assert [array.tobytes() for array in executable.run([x])] == wanted
    outputs = empty_outputs(executable)
    for state in ("usual", "flush"):
        floating_point.execute(
            executable, x.ctypes.data, tuple(addresses(outputs)), True, *_STATES[state]
        )
        assert [output.tobytes() for output in outputs] == wanted
    assert tiny / 2 != 0  # they are not zero outside of the program


def _mixed(x: Any) -> Any:
    """A matrix product, long sums, a normalisation and a sort."""
    weights = jnp.sin(jnp.arange(64.0 * 64)).reshape(64, 64)
    product = jnp.tanh(weights @ x)
    return product, jax.nn.softmax(product), jnp.sum(jnp.exp(x)), jnp.sort(x), jnp.cumsum(product)


@pytest.mark.parametrize("route", ["pjrt", "auto"])
def test_a_one_thread_program_gives_the_same_bits_every_time(
    floating_point: ModuleType, route: str
) -> None:
    program = cyxla.lower(_mixed, [jax.ShapeDtypeStruct((64,), "f4")])
    executable, _ = cyxla.compile_program(program, route=route, intra_op_threads=1)
    values = np.random.default_rng(5).standard_normal(64, "f4")
    wanted = [array.tobytes() for array in executable.run([values])]

    def runs(_: int) -> bool:
        return all(
            [array.tobytes() for array in executable.run([values])] == wanted for _ in range(200)
        )

    def executions(_: int) -> bool:
        return all(bits == wanted for bits in _executed(floating_point, executable, values))

    assert runs(0)
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(runs, range(4)))
        assert all(pool.map(executions, range(4)))
    # A second compilation gives the same program.
    again, _ = cyxla.compile_program(program, route=route, intra_op_threads=1)
    assert [array.tobytes() for array in again.run([values])] == wanted


def _executed(
    floating_point: ModuleType, executable: cyxla.Executable, values: Array
) -> list[list[bytes]]:
    """The outputs of executions that copy or read in place, at several alignments."""
    bits = []
    for offset in (0, 4, 16, 32):
        data = place(values, offset)
        for zero_copy in (False, True, True):
            outputs = empty_outputs(executable, offset)
            done = floating_point.execute(
                executable,
                data.ctypes.data,
                tuple(addresses(outputs)),
                zero_copy,
                *_STATES["usual"],
            )
            assert done[0] == 0
            bits.append([output.tobytes() for output in outputs])
    return bits


@pytest.mark.parametrize("plugin", CPU_LIBRARIES[1:])
def test_this_file_on_other_plugins(plugin: str) -> None:
    # A process has one plugin, so the tests above run again in another.
    run_tests_on_plugin(plugin, __file__, "not other_plugins", seconds=200)
