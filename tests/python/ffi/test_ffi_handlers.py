# SPDX-License-Identifier: Apache-2.0
"""Programs call the handlers: jaxlib's for linear algebra, and a user's own written in C."""

from __future__ import annotations

from pathlib import Path

import jax.ffi
import pytest

from c_library import build_library
from child_process import run_code, run_process

_PRELUDE = """
import ctypes
import numpy as np
import jax, jax.numpy as jnp
import cyxla
library = ctypes.CDLL({library!r})
twice, thrice = jax.ffi.pycapsule(library.twice), jax.ffi.pycapsule(library.thrice)
spec = jax.ShapeDtypeStruct((3,), jnp.float32)
def run(name):
    program = cyxla.lower(lambda x: jax.ffi.ffi_call(name, spec)(x) + 1, [spec])
    return cyxla.compile_program(program)[0].run([np.arange(3)])[0].tolist()
"""


@pytest.fixture(scope="module")
def prelude(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The start of a script, with the handlers' library."""
    source = (Path(__file__).parents[1] / "ffi_handlers.c").read_text()
    library = tmp_path_factory.mktemp("ffi") / "handlers.so"
    build_library(library, source, jax.ffi.include_dir())
    return _PRELUDE.format(library=str(library))


def test_a_users_handler_registered_before_and_after(prelude: str) -> None:
    printed = run_code(
        prelude
        + """
cyxla.register_ffi_target("user_twice", twice)
cyxla.initialize()
print(run("user_twice"))
cyxla.register_ffi_target("user_thrice", {"execute": thrice}, platform="cpu")
print(run("user_thrice"))
try:
    cyxla.register_ffi_target("user_twice", thrice)
except cyxla.ArgumentError as error:
    print("refused", "'user_twice'" in str(error))
cyxla.register_ffi_target("user_twice", twice)
print(run("user_twice"))
"""
    )
    assert printed == "[1.0, 3.0, 5.0]\n[1.0, 4.0, 7.0]\nrefused True\n[1.0, 3.0, 5.0]\n"


def test_without_jax_targets_only_later_handlers_are_known(prelude: str) -> None:
    printed = run_code(
        prelude
        + """
cyxla.register_ffi_target("early", twice)
cyxla.initialize(jax_targets=False)
for name in ("early", "absent"):
    try:
        run(name)
    except cyxla.CompileError as error:
        print("not compiled", name in str(error))
cyxla.register_ffi_target("late", thrice)
print(run("late"))
"""
    )
    assert printed == "not compiled True\nnot compiled True\n[1.0, 4.0, 7.0]\n"


def test_the_default_runtime_has_the_handlers_of_jaxlib_and_the_users(prelude: str) -> None:
    # compile_program calls initialize.
    printed = run_code(
        prelude
        + """
cyxla.register_ffi_target("early", twice)
print(run("early"))
matrix = jax.ShapeDtypeStruct((2, 2), jnp.float32)
program = cyxla.lower(jnp.linalg.cholesky, [matrix])
executable, _ = cyxla.compile_program(program)
print(np.round(executable.run([np.array([[4.0, 1.0], [1.0, 3.0]])])[0].astype("f8"), 4).tolist())
"""
    )
    assert printed == "[1.0, 3.0, 5.0]\n[[2.0, 0.0], [0.5, 1.6583]]\n"


def test_linear_algebra_runs_where_nothing_was_ever_lowered(tmp_path: Path) -> None:
    # JAX sets the pointers to LAPACK when it lowers a call; here only cyxla can have set them.
    program = tmp_path / "program.pickle"
    run_code(f"""
        import pickle, jax, jax.numpy as jnp, cyxla
        system = [jax.ShapeDtypeStruct(shape, "f8") for shape in ((2, 2), (2,))]
        solve = cyxla.lower(jnp.linalg.solve, system)
        open({str(program)!r}, "wb").write(pickle.dumps(solve))
    """)
    ended = run_process(
        "-c",
        "import pickle, sys, numpy as np, cyxla\n"
        f"program = pickle.loads(open({str(program)!r}, 'rb').read())\n"
        "executable, _ = cyxla.compile_program(program)\n"
        "(x,) = executable.run([np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 2.0])])\n"
        "print(x.tolist(), 'jax' in sys.modules)",
    )
    assert (ended.returncode, ended.stdout) == (0, "[0.5, 0.5] False\n"), ended.stderr
