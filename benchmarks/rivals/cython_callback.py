# SPDX-License-Identifier: Apache-2.0
"""A Cython callback that takes the GIL around `jax.jit`, called from C: cython_callback.pyx."""

from __future__ import annotations

import functools
import importlib.util
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import jax
import numpy as np

from case import Case
from loops import NativeLoop
from native_build import ROOT, build_library, generated_source, run_tool
from rivals import Rival

_SOURCE = ROOT / "rivals" / "cython_callback.pyx"


@functools.cache
def _module() -> ModuleType:
    import Cython

    name = _SOURCE.stem
    key = f"/* {Cython.__version__} {np.__version__} {sys.version} */"
    copy = generated_source(_SOURCE.name, f"# {key}\n{_SOURCE.read_text()}")
    translated = copy.with_suffix(".c")
    if not translated.exists():
        run_tool([sys.executable, "-m", "cython", "-3", str(copy), "-o", str(translated)])
    include = [sysconfig.get_path("include"), np.get_include()]
    library = build_library(translated, *(f"-I{path}" for path in include))
    # The init function has the name of the source, not of the file.
    spec = importlib.util.spec_from_file_location(name, Path(library))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _callback(case: Case) -> NativeLoop:
    outputs = case.new_outputs()
    callback = _module().Callback(jax.jit(case.task.function), case.inputs, outputs)
    return NativeLoop(
        callback.step, callback.state, outputs, keep=callback, reason=lambda: callback.failure
    )


RIVALS = (Rival("cython-jax", "Cython with the GIL, jax.jit", "C", _callback),)
