# SPDX-License-Identifier: Apache-2.0
"""Callbacks that execute other programs, or their own, beyond the plugin's limit of executions."""

from __future__ import annotations

import pytest

from cpu_plugins import CPU_LIBRARIES, run_with_plugin

_START = """
    import collections, logging, time
    import jax, numpy as np, cyxla
    from support.threads import run_all
    logging.disable()

    vector = jax.ShapeDtypeStruct((3,), "f4")
    x = np.ones(3, "f4")
    cyxla.initialize(jax_targets=False)
    inner, _ = cyxla.compile_program(cyxla.lower(lambda x: 2 * x, [vector]), route="pjrt")

    def calling(function):
        program = cyxla.lower(lambda x: jax.pure_callback(function, vector, x), [vector])
        return cyxla.compile_program(program)[0]
"""


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_many_threads_whose_callbacks_execute(library: str) -> None:
    # In XLA:CPU the 33rd execution waits for one to end; each of these waits for another.
    output = run_with_plugin(
        library,
        _START
        + """
    def waits_and_executes(a):
        time.sleep(0.3)  # until all are in flight
        return inner.run([np.asarray(a)])[0]
    outer = calling(waits_and_executes)
    ended = []
    def work():
        try:
            ended.append(outer.run([x])[0].tolist() == [2, 2, 2])
        except cyxla.ExecutionError as error:  # if the plugin's threads run callbacks
            ended.append(type(error.__cause__) is cyxla.UnsupportedError)
    run_all(*[work] * 70)
    print(collections.Counter(ended))
    print(inner.run([x])[0])
""",
    )
    assert output == "Counter({True: 70})\n[2. 2. 2.]\n"


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_a_callback_that_executes_its_own_program(library: str) -> None:
    output = run_with_plugin(
        library,
        _START
        + """
    depth = deepest = 0
    def falls(a):
        global depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        try:
            return np.asarray(a) if depth == limit else itself.run([np.asarray(a)])[0]
        finally:
            depth -= 1
    itself = calling(falls)
    limit = 1
    print(itself.run([x])[0])
    limit = 40
    for _ in range(2):
        try:
            itself.run([x])
        except cyxla.ExecutionError as error:
            while error.__cause__ is not None:
                error = error.__cause__
            print(type(error).__name__, "from within a host callback" in str(error))
    assert deepest <= 31, deepest
    limit = 1
    print(itself.run([x])[0])
""",
    )
    unsupported = "UnsupportedError True\n"
    assert output == f"[1. 1. 1.]\n{2 * unsupported}[1. 1. 1.]\n"
