# SPDX-License-Identifier: Apache-2.0
"""The rivals: ways to call the same function, one file each."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from case import Case
from loops import Loop

# In the order of tables and plots.
MODULES = (
    "cyxla_native",
    "cyxla_python",
    "bare_loop",
    "jax_jit",
    "cython_callback",
    "pypjrt_client",
    "casadi_function",
    "numba_function",
    "onnx_session",
    "hand_c",
)


class NotApplicableError(Exception):
    """This rival cannot do this task; the message says why."""


class MissingError(Exception):
    """This rival needs something that is not installed; the message says what."""


@dataclasses.dataclass(frozen=True)
class Rival:
    """A way to call a function.

    Attributes:
        name: the name that `--only` takes.
        title: for tables and plots.
        caller: the language that the loop around the calls is written in: "C" or "Python".
        prepare: prepares it for a task. Raises NotApplicableError, or ImportError for a package
            that is not installed.
    """

    name: str
    title: str
    caller: str
    prepare: Callable[[Case], Loop]


def all_rivals(*extra: Path) -> tuple[Rival, ...]:
    """Every rival of this folder, then those of other files: each defines a tuple RIVALS."""
    modules = [importlib.import_module(f"rivals.{name}") for name in MODULES]
    modules += [_load(path) for path in extra]
    return tuple(rival for module in modules for rival in module.RIVALS)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"extra_rival_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
