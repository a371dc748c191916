# SPDX-License-Identifier: Apache-2.0
"""cyxla from Python: `Executable.run`, with fresh or given outputs, and `Executable.bind`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from case import Case
from loops import PythonLoop
from rivals import Rival
from rivals.cyxla_native import compile_case


def _run(**options: Any) -> Callable[[Case], PythonLoop]:
    def prepare(case: Case) -> PythonLoop:
        run, arrays = compile_case(case, **options).run, tuple(case.inputs)
        return PythonLoop(lambda: run(arrays))

    return prepare


def _run_out(case: Case) -> PythonLoop:
    run, arrays, out = compile_case(case).run, tuple(case.inputs), tuple(case.new_outputs())
    return PythonLoop(lambda: run(arrays, out))


def _bind(**options: Any) -> Callable[[Case], PythonLoop]:
    return lambda case: PythonLoop(
        compile_case(case, **options).bind(case.inputs, case.new_outputs())
    )


RIVALS = (
    Rival("cyxla-bind", "cyxla bind", "Python", _bind()),
    Rival("cyxla-run", "cyxla run", "Python", _run()),
    Rival("cyxla-run-out", "cyxla run, out given", "Python", _run_out),
    Rival("cyxla-bind-pjrt", "cyxla bind, PJRT", "Python", _bind(route="pjrt")),
    Rival("cyxla-run-pjrt", "cyxla run, PJRT", "Python", _run(route="pjrt")),
)
