# SPDX-License-Identifier: Apache-2.0
"""Handlers of a newer XLA FFI than the plugin's: adapted, or refused by name, on each plugin."""

from __future__ import annotations

from pathlib import Path

import jax.ffi
import pytest

from c_library import build_library
from cpu_plugins import CPU_LIBRARIES, run_with_plugin

# The minor version of XLA's FFI that each plugin has.
_MINOR = dict(zip(CPU_LIBRARIES, (4, 3, 2), strict=True))


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library of the handlers written in C."""
    library = tmp_path_factory.mktemp("ffi_versions") / "handlers.so"
    source = (Path(__file__).parents[1] / "ffi_handlers.c").read_text()
    return str(build_library(library, source, jax.ffi.include_dir()))


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_handlers_of_newer_versions(library: str, handlers: str) -> None:
    printed = run_with_plugin(
        library,
        f"""
        import ctypes, numpy as np, jax, jax.numpy as jnp, cyxla
        from cyxla.ffi import targets
        from jax.ffi import ffi_call, pycapsule
        library = ctypes.CDLL({handlers!r})
        spec = jax.ShapeDtypeStruct((3,), jnp.float32)
        def compiled(name):
            program = cyxla.lower(lambda x: ffi_call(name, spec)(x) + 1, [spec])
            return cyxla.compile_program(program)[0]
        cyxla.register_ffi_target("early", pycapsule(library.twice_5))
        cyxla.initialize()
        cyxla.register_ffi_target("old", pycapsule(library.twice))
        for name in ("early", "old"):
            print(compiled(name).run([np.arange(3)])[0].tolist(), targets.registration(name)[1])
        try:
            cyxla.register_ffi_target("future", pycapsule(library.twice_6))
        except cyxla.UnsupportedError as error:
            print(error)
        try:
            compiled("future")
        except cyxla.CompileError as error:
            print([line for line in str(error).splitlines() if line.startswith("  future: ")])
        cyxla.register_ffi_target("failing", pycapsule(library.failing_5))
        try:
            compiled("failing").run([np.arange(3)])
        except cyxla.ExecutionError as error:
            print("the handler has failed on purpose" in str(error))
        try:
            cyxla.register_ffi_target("cyxla_ffi_version_probe", pycapsule(library.twice))
        except cyxla.PluginError as error:
            print("cyxla_ffi_version_probe" in str(error), "uplicate" in str(error))
        address = ctypes.cast(library.twice_5, ctypes.c_void_p).value
        targets.register_own("xla_ffi_python_cpu_callback", address)  # refused for users
        targets.register_own("own", address)
        print(targets.registration("xla_ffi_python_cpu_callback").is_usable,
              compiled("own").run([np.arange(3)])[0].tolist())
        """,
    )
    lines = printed.splitlines()
    minor = _MINOR[library]
    assert lines[:2] == [
        f"[1.0, 3.0, 5.0] adapted from XLA FFI 0.5 to the plugin's 0.{minor}",
        "[1.0, 3.0, 5.0] registered unchanged (XLA FFI 0.1)",
    ]
    refusal = lines[2]
    assert refusal.startswith(
        "the handler of the custom-call target future was built for XLA FFI 0.6, the plugin /"
    )
    assert f" has 0.{minor}, and cyxla adapts handlers only up to 0.5; use " in refusal
    assert lines[3] == str([f"  future: {refusal}"])
    assert lines[4:] == ["True", "True True", "True [1.0, 3.0, 5.0]"]


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_linear_algebra_equals_jax(library: str) -> None:
    # jaxlib's handlers are newer than two of the three plugins.
    printed = run_with_plugin(
        library,
        """
        import numpy as np, jax, jax.numpy as jnp, cyxla
        from cyxla.ffi import targets
        jax.config.update("jax_enable_x64", True)
        linalg = jnp.linalg
        functions = dict(
            solve=lambda a: linalg.solve(a, a + 1), cholesky=linalg.cholesky, qr=linalg.qr,
            eigh=linalg.eigh, svd=linalg.svd, eig=linalg.eig,
        )
        a = np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]])
        programs = [cyxla.lower(f, [jax.ShapeDtypeStruct(a.shape, a.dtype)])
                    for f in functions.values()]
        compiled = cyxla.compile_programs(programs)
        for (name, function), (executable, _) in zip(functions.items(), compiled):
            wanted = jax.tree.leaves(jax.jit(function)(a))
            got = executable.run([a])
            assert len(got) == len(wanted)
            for g, w in zip(got, wanted):
                np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-12, err_msg=name)
        minor = int(targets.registration("lapack_dpotrf_ffi")[1].split("FFI 0.")[1][0])
        names = [name for name, _, _ in targets.platform_targets("cpu")]
        print(len(names), all(targets.registration(name).is_usable for name in names), minor,
              {targets.registration(name)[1] for name in names})
        """,
    )
    minor = int(printed.split()[2])
    assert printed.startswith(f"62 True {minor} ")
    if minor > _MINOR[library]:
        description = f"adapted from XLA FFI 0.{minor} to the plugin's 0.{_MINOR[library]}"
    else:
        description = f"registered unchanged (XLA FFI 0.{minor})"
    assert printed.split(maxsplit=3)[3].strip() == str({description})
