# SPDX-License-Identifier: Apache-2.0
"""cyxla from Python: `Executable.run`, with fresh or given outputs, and `Executable.bind`."""

from __future__ import annotations

from case import Case
from loops import PythonLoop
from rivals import Rival
from rivals.cyxla_native import compile_case


def _run(case: Case) -> PythonLoop:
    run, arrays = compile_case(case).run, list(case.inputs)
    return PythonLoop(lambda: run(arrays))


def _run_out(case: Case) -> PythonLoop:
    run, arrays, out = compile_case(case).run, list(case.inputs), case.new_outputs()
    return PythonLoop(lambda: run(arrays, out))


def _bind(case: Case) -> PythonLoop:
    return PythonLoop(compile_case(case).bind(case.inputs, case.new_outputs()))


RIVALS = (
    Rival("cyxla-bind", "cyxla bind", "Python", _bind),
    Rival("cyxla-run", "cyxla run", "Python", _run),
    Rival("cyxla-run-out", "cyxla run, out given", "Python", _run_out),
)
