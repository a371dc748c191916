# SPDX-License-Identifier: Apache-2.0
"""Resident memory does not grow with the number of calls of any kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpu_plugins import CPU_LIBRARIES, variables
from support.native import run_with_modules

# The ways to call, as functions of the number of calls, which the first item divides.
_CALLS = """
import numpy as np
import jax.numpy as jnp
import cyxla
import c_table
from support.arrays import addresses, build, described, place, resident_bytes

f = build(lambda x: (jnp.sin(x).sum(), x + 1), ((32,), "f4"))
x, shifted = place(np.ones(32, "f4")), place(np.ones(32, "f4"), 4)
others = [place(np.ones(32, "f4")) for _ in range(3)]
wrong = np.ones(31, "f4")
out = (np.zeros((), "f4"), np.zeros(32, "f4"))
inputs, outputs = described([x]), addresses(out)
prepared, bound = c_table.prepare(f, inputs, outputs, True), f.bind([x])

def repeat(function):
    def calls(count):
        for _ in range(count):
            function()
    return calls

def execute(arrays, zero_copy, failing=False, **options):
    def calls(count):
        given = described(arrays)
        failures, _ = c_table.execute(f, given, outputs, zero_copy, repeat=count, **options)
        assert failures == (count if failing else 0)
    return calls

def run_failing():
    try:
        f.run([wrong])
    except cyxla.ArgumentError:
        return
    raise AssertionError("accepted")

def run_in_turn(count):
    for i in range(count):
        f.run([others[i % 3]])

ways = {
    "run": (1, repeat(lambda: f.run([x]))),
    "run on changing arrays": (4, run_in_turn),
    "run with out": (4, repeat(lambda: f.run([shifted], out=out))),
    "run with a conversion": (20, repeat(lambda: f.run([[1] * 32]))),
    "run failing": (10, repeat(run_failing)),
    "bound call": (4, repeat(bound)),
    "binding": (10, repeat(lambda: f.bind([x]))),
    "execute, copy": (1, execute([x], False)),
    "execute, zero copy": (1, execute([x], True)),
    "execute, misaligned": (4, execute([shifted], True)),
    "execute on a thread": (4, execute([x], True, on_thread=True)),
    "execute failing": (1, execute([wrong], True, failing=True)),
    "prepared call": (4, lambda count: c_table.call(prepared, repeat=count)),
    "preparing": (10, repeat(lambda: c_table.discard(c_table.prepare(f, inputs, outputs, True)))),
}
grown = {}
LIMIT = 256 * 1024
for way, (divisor, calls) in ways.items():
    calls(NUM_CALLS // divisor // 10)
    for _ in range(3):  # the plugin's threads move memory too, but a leak grows every time
        before = resident_bytes()
        calls(NUM_CALLS // divisor)
        grown[way] = resident_bytes() - before
        if grown[way] < LIMIT:
            break
assert all(growth < LIMIT for growth in grown.values()), grown
"""

_CYCLES = """
import numpy as np
import cyxla
import jax, jax.numpy as jnp
import c_table
from support.arrays import described, resident_bytes

program = cyxla.lower(lambda x: jnp.sin(x).sum(), [jax.ShapeDtypeStruct((256,), "f4")])
x, y = np.ones(256, "f4"), np.zeros((), "f4")

def cycle():
    executable, _ = cyxla.compile_program(program)
    executable.run([x])
    bound = executable.bind([x])
    bound()
    spec = c_table.program_spec(executable)
    c_table.retain(spec)
    del executable, bound
    assert c_table.execute(spec, described([x]), [y.ctypes.data], True) == (0, "")
    c_table.release(spec)

def cycles(count):
    for _ in range(count):
        cycle()

cycles(20)
for _ in range(3):  # as above
    before = resident_bytes()
    cycles(120)
    grown = resident_bytes() - before
    if grown < 120 * 10 * 1024:
        break
assert grown < 120 * 10 * 1024, grown
"""


@pytest.mark.parametrize("plugin", CPU_LIBRARIES)
def test_calls_leave_nothing_behind(modules: Path, plugin: str) -> None:
    num_calls = 200_000 if plugin == CPU_LIBRARIES[0] else 40_000
    code = f"NUM_CALLS = {num_calls}\n{_CALLS}"
    run_with_modules(modules, code, env=variables(plugin), seconds=250)


def test_compiled_programs_leave_nothing_behind(modules: Path) -> None:
    run_with_modules(modules, _CYCLES, seconds=250)
