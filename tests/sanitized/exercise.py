# SPDX-License-Identifier: Apache-2.0
"""Uses the extension module in every way, also through its C table, and compares each result.

The extension is built with AddressSanitizer, whose libraries are preloaded. The plugin and its
kernels are not instrumented, but their allocations are checked. With --plant an input is shorter
than declared, which AddressSanitizer must report.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import cyxla

sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))

from direct_calls import Input, table_of_functions
from support.threads import run_all


def function(x: Any) -> Any:
    return jnp.sin(x) * 2, x.sum()


def compiled(size: int, **options: Any) -> cyxla.Executable:
    program = cyxla.lower(function, [jax.ShapeDtypeStruct((size,), jnp.float64)])
    executable, _ = cyxla.compile_program(program, **options)
    return executable


def check(results: Any, x: np.ndarray) -> None:
    np.testing.assert_allclose(results[0], np.sin(x) * 2, rtol=1e-12)
    np.testing.assert_allclose(results[1], x.sum(), rtol=1e-12)


def use_from_python(executable: cyxla.Executable, size: int) -> None:
    x = np.linspace(0, 1, size)
    out = (np.zeros(size), np.zeros(()))
    for array in (
        x,
        np.repeat(x, 2)[::2],
        x[::-1],
        list(x),
        np.frombuffer(b"\0" + x.tobytes(), "u1")[1:].view("f8"),
    ):
        check(executable.run([array]), np.asarray(array))
    executable.run([x], out=out)
    check(out, x)
    bound = executable.bind([x])
    for value in (0.25, 0.5):
        x[:] = value
        check(bound(), x)
    for wrong in ([x[1:]], [x, x], [], [None], [x.astype("c16")], ["text"]):
        try:
            executable.run(wrong)
        except (cyxla.ArgumentError, TypeError, ValueError):
            continue
        raise AssertionError(f"{wrong!r} was accepted")


def use_from_c(executable: cyxla.Executable, size: int) -> None:
    table = table_of_functions()
    spec = table.program_spec(executable)
    table.retain(spec)
    for offset in (0, 1):
        memory = np.zeros(size * 8 + 64, "u1")
        x = memory[offset : offset + size * 8].view("f8")
        for zero_copy in (0, 1):
            x[:] = np.linspace(offset, 1 + zero_copy, size)
            out = (np.zeros(size), np.zeros(()))
            addresses = (ctypes.c_void_p * 2)(*(array.ctypes.data for array in out))
            given = Input(x.ctypes.data, 12, size)
            assert table.execute(spec, given, addresses, zero_copy) == 0
            check(out, x)
            call = table.prepare(spec, given, addresses, zero_copy)
            x[:] = 0.5
            assert table.call(call) == 0
            check(out, x)
            table.discard(call)
        dropped = (ctypes.c_void_p * 2)(None, None)
        assert table.execute(spec, Input(x.ctypes.data, 12, size), dropped, 1) == 0
        assert table.execute(spec, Input(x.ctypes.data, 12, size + 1), dropped, 1) == -1
        assert table.execute(spec, Input(x.ctypes.data, 11, size), dropped, 1) == -1
        for length in (0, 1, 20, 2000):
            assert table.last_error(ctypes.create_string_buffer(max(length, 1)), length) > 0
    table.release(spec)


def use_from_threads(executable: cyxla.Executable, size: int) -> None:
    def work() -> None:
        for _ in range(20):
            use_from_c(executable, size)
            check(executable.run([np.ones(size)]), np.ones(size))
        use_from_python(compiled(size + 1), size + 1)

    run_all(*[work] * 4)


def plant(executable: cyxla.Executable, size: int) -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    short = libc.malloc(size * 8 - 8)
    table = table_of_functions()
    spec = table.program_spec(executable)
    table.execute(spec, Input(short, 12, size), (ctypes.c_void_p * 2)(None, None), 0)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    cyxla.initialize()
    if "--plant" in sys.argv:
        plant(compiled(9, route="pjrt"), 9)
        print("the planted fault went unnoticed")
        return
    for size, options in (
        (5, {"route": "pjrt"}),
        (9, {"route": "direct"}),
        (4000, {"route": "pjrt", "outputs_in_place": True}),
        (7, {"intra_op_threads": 1}),
    ):
        executable = compiled(size, **options)
        use_from_python(executable, size)
        use_from_c(executable, size)
        use_from_threads(executable, size)
        del executable
        print(f"{size} numbers, {options}: done")
    try:
        cyxla.compile_program(
            cyxla.lower(function, [jax.ShapeDtypeStruct((3,), jnp.float32)]),
            options={"xla_nonexistent": 1},
        )
        raise AssertionError("an unknown option was accepted")
    except cyxla.CompileError as error:
        print(f"refused: {error}")
    print(f"errors: {cyxla.error_info().count}")


if __name__ == "__main__":
    main()
