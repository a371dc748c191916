# SPDX-License-Identifier: Apache-2.0
"""The direct route from C, with the real plugin: threads, memory, lifetimes, no allocations."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cyxla
from cpu_plugins import CPU_LIBRARIES
from cyxla.dtypes import ElementType
from support.arrays import place
from support.cycles import PROGRAMS, Cycle, compiled, cycle_of, inputs_of
from support.native import import_module, run_tests_on_plugin, run_with_modules

# The first results of join(): failures, wrong results and a message.
_RIGHT = (0, 0, "")


@pytest.fixture(scope="module")
def threads(modules: Path) -> ModuleType:
    """The module c_threads."""
    return import_module(modules, "c_threads")


@pytest.fixture(scope="module")
def directs() -> dict[str, cyxla.Executable]:
    """Every program on the direct route."""
    return {name: compiled(name, "direct") for name in PROGRAMS}


@pytest.fixture(scope="module")
def cycles() -> dict[str, Cycle]:
    """Inputs and the plugin's results for every program."""
    return {name: cycle_of(name) for name in PROGRAMS}


def run(
    threads: ModuleType,
    executable: cyxla.Executable,
    cycle: Cycle,
    ways: str,
    num_calls: int,
    *,
    hold_gil: bool = False,
    **options: Any,
) -> tuple[int, int, str]:
    """Run one thread for each letter of `ways`; return failures, wrong results and a message."""
    team = threads.start(((executable, *cycle),), ways, num_calls, **options)
    done: tuple[int, int, str] = threads.join(team, hold_gil=hold_gil)[:3]
    return done


@pytest.mark.parametrize("name", ["rosenbrock", "sine"])
def test_ten_million_calls_on_each_of_four_threads(
    threads: ModuleType, cycles: dict[str, Cycle], name: str, directs: dict[str, cyxla.Executable]
) -> None:
    # The main thread keeps the GIL.
    executable = directs[name]
    errors_before = cyxla.error_info().count
    assert run(threads, executable, cycles[name], "kkkk", 10_000_000, hold_gil=True) == _RIGHT
    assert cyxla.error_info().count == errors_before


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_way_to_call_at_once_while_python_calls_too(
    threads: ModuleType, cycles: dict[str, Cycle], name: str, directs: dict[str, cyxla.Executable]
) -> None:
    executable = directs[name]
    cycle = cycles[name]
    inputs = inputs_of(name)
    team = threads.start(((executable, *cycle),), "kpmui", 1000 if name == "heat" else 500_000)
    bound = executable.bind([place(inputs[0])])
    for step in range(1000):
        number = step % len(inputs)
        results = executable.run([inputs[number]])
        assert b"".join(result.tobytes() for result in results) == cycle.outputs[number]
        bound.inputs[0][...] = inputs[number]
        assert b"".join(result.tobytes() for result in bound()) == cycle.outputs[number]
    assert threads.join(team)[:3] == _RIGHT


def test_a_wrong_result_is_seen(
    threads: ModuleType, cycles: dict[str, Cycle], directs: dict[str, cyxla.Executable]
) -> None:
    # One bit of one set is wrong.
    inputs, outputs = cycles["rosenbrock"]
    changed = bytes([outputs[2][0] ^ 1]) + outputs[2][1:]
    wrong = Cycle(inputs, (*outputs[:2], changed, *outputs[3:]))
    executable = directs["rosenbrock"]
    assert run(threads, executable, wrong, "kpmui", 7 * 10) == (0, 5 * 10, "")


def test_threads_that_keep_a_program_go_on_after_its_executable(
    threads: ModuleType, cycles: dict[str, Cycle]
) -> None:
    for _ in range(5):  # on a busy machine the threads may end too early
        executable = compiled("rosenbrock", "direct")
        team = threads.start(((executable, *cycles["rosenbrock"]),), "kpmu", 2_000_000)
        del executable
        dropped_ns = time.monotonic_ns()
        compiled("sine", "direct")  # frees programs without references
        *done, _, _, end_ns, _ = threads.join(team)
        assert tuple(done) == _RIGHT
        if end_ns > dropped_ns:
            return
    pytest.fail("every thread had ended when the executable was dropped")


def test_a_call_ends_well_though_the_last_reference_is_dropped_meanwhile(
    threads: ModuleType,
) -> None:
    # One long call, on a thread that does not retain the program.
    inputs, outputs = cycle_of("long")
    long = Cycle(inputs[:1], outputs[:1])
    for _ in range(20):
        executable = compiled("long", "direct")  # frees programs without references
        team = threads.start(((executable, *long),), "k", 1, retains=False)
        while not threads.is_inside(team):
            pass
        del executable
        dropped_ns = time.monotonic_ns()
        *done, _, _, end_ns, _ = threads.join(team)
        assert tuple(done) == _RIGHT
        if end_ns > dropped_ns:
            return
    pytest.fail("every call had ended when its program was dropped")


@pytest.mark.parametrize("way", "kpmui")
def test_a_small_stack_is_enough(
    threads: ModuleType, cycles: dict[str, Cycle], way: str, directs: dict[str, cyxla.Executable]
) -> None:
    for name in ("rosenbrock", "heat"):
        executable = directs[name]
        done = run(threads, executable, cycles[name], way, 100, stack_bytes=64 << 10)
        assert done == _RIGHT


def test_threads_that_end_pass_on_what_they_had(
    threads: ModuleType, cycles: dict[str, Cycle], directs: dict[str, cyxla.Executable]
) -> None:
    executable = directs["rosenbrock"]
    for _ in range(100):
        assert run(threads, executable, cycles["rosenbrock"], "m", 20) == _RIGHT
    assert run(threads, executable, cycles["rosenbrock"], "kmui" * 25, 200) == _RIGHT


def test_failures_are_counted_on_every_thread(
    threads: ModuleType,
    modules: Path,
    cycles: dict[str, Cycle],
    directs: dict[str, cyxla.Executable],
) -> None:
    executable = directs["rosenbrock"]
    c_table = import_module(modules, "c_table")
    before = cyxla.error_info().count

    def fail(num_elements: int) -> tuple[int, str]:
        wrong = [(8, int(ElementType.F64), num_elements)]
        done: tuple[int, str] = c_table.execute(executable, wrong, [0, 0], True, repeat=50_000)
        return done

    team = threads.start(((executable, *cycles["rosenbrock"]),), "kpmui", 50_000)
    with ThreadPoolExecutor(4) as pool:
        for num_elements, (failures, message) in zip(
            range(3, 7), pool.map(fail, range(3, 7)), strict=True
        ):
            assert failures == 50_000
            assert f"must have 2 elements, not {num_elements}" in message
    assert threads.join(team)[:3] == _RIGHT
    assert cyxla.error_info().count == before + 4 * 50_000


def test_nothing_is_allocated_and_no_lock_is_taken(modules: Path) -> None:
    # In a process that preloads counting functions for both.
    (counter,) = modules.glob("count_allocations.*")
    run_with_modules(
        modules,
        """
import c_threads
from support.cycles import PROGRAMS, compiled, cycle_of

def count(executable, cycle, way, num_calls=1016, warm_up=16):
    team = c_threads.start(((executable, *cycle),), way, num_calls, warm_up=warm_up)
    *done, allocations, locks, _, _ = c_threads.join(team)
    assert done == [0, 0, ""], done
    return allocations, locks

# The counters work: the plugin's route allocates in each call.
cycle = cycle_of("rosenbrock")
allocations, _ = count(compiled("rosenbrock", "pjrt"), cycle, "k")
assert allocations > 1000, allocations

# The first call of a thread on the direct route allocates too, under a lock; a thread that takes
# over an ended thread's slot allocates only for itself.
executable = compiled("rosenbrock", "direct")
first = count(executable, cycle, "k", 1, 0)
assert first[0] > 5 and first[1] > 0, first
for _ in range(100):
    next_one = count(executable, cycle, "k", 1, 0)
    assert next_one[0] <= 2 and next_one[1] <= 1, next_one

for name in PROGRAMS:
    executable, cycle = compiled(name, "direct"), cycle_of(name)
    for way in "kpmui":
        assert count(executable, cycle, way) == (0, 0), (name, way)
    assert count(executable, cycle, "kpmui") == (0, 0), name
print("counted")
""",
        env={"LD_PRELOAD": str(counter)},
    )


@pytest.mark.parametrize("plugin", CPU_LIBRARIES[1:])
def test_this_file_on_other_plugins(plugin: str) -> None:
    # A process has one plugin, so the tests above run again in another.
    run_tests_on_plugin(plugin, __file__, "not other_plugins and not ten_million", seconds=400)
