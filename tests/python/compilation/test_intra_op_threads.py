# SPDX-License-Identifier: Apache-2.0
"""`compile_program(intra_op_threads=1)`: results, threads, and errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cpu_plugins import CPU_LIBRARIES, run_with_plugin
from cyxla.compilation import settings as compile_settings
from cyxla.compilation.compile import compile_program
from cyxla.compilation.settings import check_settings
from cyxla.errors import ArgumentError, CompileError
from cyxla.lowering.lower import lower
from cyxla.program import Program

S = jax.ShapeDtypeStruct


def sine(platform: str = "cpu") -> Program:
    return lower(jnp.sin, [S((3,), "f4")], platform=platform)


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_results_agree(library: str) -> None:
    output = run_with_plugin(
        library,
        """
        import jax, jax.numpy as jnp, numpy as np, cyxla
        S = jax.ShapeDtypeStruct
        programs = {
            "sum": (lambda x: jnp.tanh(x).sum(0), (300, 200)),
            "small product": (lambda x: jnp.tanh(x @ x), (16, 16)),
            "product": (lambda x: x @ x.T, (200, 300)),
            "gradient": (jax.grad(lambda x: jnp.tanh(x @ x.T).sum()), (32, 32)),
            "convolution": (lambda x: jnp.convolve(x[0], x[1], "same"), (2, 400)),
            "sort": (jnp.sort, (50, 70)),
            "fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), (8, 64)),
            "softmax": (lambda x: jax.nn.softmax(x, 1), (64, 64)),
        }
        rng = np.random.default_rng(0)
        for name, (function, shape) in programs.items():
            program = cyxla.lower(function, [S(shape, "f4")])
            x = rng.normal(size=shape).astype("f4")
            wanted = np.asarray(jax.jit(function)(x))
            for threads in (None, 1):
                (got,) = cyxla.compile_program(program, intra_op_threads=threads)[0].run([x])
                np.testing.assert_allclose(
                    got, wanted, rtol=1e-5, atol=1e-5 * abs(wanted).max(), err_msg=name)
        print("equal")
        """,
    )
    assert output == "equal\n"


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_one_thread_computes(library: str) -> None:
    # Measures processor time per thread. The pool has two threads, also on a machine with one
    # processor. On a busy machine the second one may get no work for a while, so the default gets
    # several tries; with one thread every try counts. Each element needs much computation, so that
    # copies do not matter where memory is slow.
    output = run_with_plugin(
        library,
        """
        import os, jax, jax.numpy as jnp, numpy as np, cyxla
        def spent():
            tasks = os.listdir("/proc/self/task")
            paths = {task: f"/proc/self/task/{task}/schedstat" for task in tasks}
            return {task: int(open(path).read().split()[0]) for task, path in paths.items()}
        def share_of_second():
            before = spent()
            for _ in range(10):
                executable.run([x], out=out)
            # Waiting for the result costs the calling thread a little time.
            times = sorted(time - before.get(task, 0) for task, time in spent().items())
            return times[-2] / times[-1]
        cyxla.initialize(threads=2)
        x = np.linspace(-3, 3, 400_000, dtype="f4")
        out = [np.empty_like(x)]
        def function(x):
            for _ in range(10):
                x = jnp.tanh(x)
            return x
        program = cyxla.lower(function, [jax.ShapeDtypeStruct(x.shape, "f4")])
        executable, _ = cyxla.compile_program(program)
        by_default = 0
        for _ in range(60):
            by_default = max(by_default, share_of_second())
            if by_default > 0.25:
                break
        executable, _ = cyxla.compile_program(program, intra_op_threads=1)
        print(by_default, max(share_of_second() for _ in range(3)))
        """,
    )
    second_by_default, second_of_one = map(float, output.split())
    assert second_by_default > 0.15, output
    assert second_of_one < 0.15, output


def test_small_matrix_products_become_kernels() -> None:
    program = lower(lambda x: jnp.tanh(x @ x), [S((16, 16), "f4")], platform="cpu")
    counts = [
        compile_program(program, intra_op_threads=threads, exact=True)[1].instructions
        for threads in (None, 1)
    ]
    assert counts[0] != counts[1]


def test_options_of_its_own_are_kept() -> None:
    given = {
        "xla_disable_hlo_passes": "dot_decomposer",
        "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
        "xla_cpu_multi_thread_eigen": False,
        "xla_backend_optimization_level": 1,
    }
    settings = check_settings([sine()], given, 1, False, "auto", False)
    passes = "dot_decomposer,cpu-parallel-task-assigner"
    assert settings.overrides == {**given, "xla_disable_hlo_passes": passes}
    assert settings.optional == set()
    assert check_settings([sine()], given, None, False, "auto", False).overrides == given
    executable, _ = compile_program(sine(), options=given, intra_op_threads=np.int64(1))  # type: ignore[arg-type]
    np.testing.assert_allclose(executable.run([[0, 1, 2]])[0], np.sin([0, 1, 2]), rtol=1e-6)


def test_a_plugin_that_does_not_know_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_settings, "_FUSIONS_OPTION", "xla_cpu_no_such_option")
    executable, _ = compile_program(sine(), intra_op_threads=1)
    np.testing.assert_allclose(executable.run([[0, 1, 2]])[0], np.sin([0, 1, 2]), rtol=1e-6)
    # An explicit request is an error.
    with pytest.raises(CompileError, match="No such compile option: 'xla_cpu_no_such_option'"):
        compile_program(sine(), options={"xla_cpu_no_such_option": ""}, intra_op_threads=1)


@pytest.mark.parametrize("number", [0, 2, -1, True, 1.0, "1"])
def test_other_numbers(number: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        compile_program(sine(), intra_op_threads=number)
    assert str(caught.value) == (
        f"intra_op_threads must be None or 1, got {number!r}: XLA's kernels use one thread or the"
        " plugin's whole pool; cap the pool with cyxla.initialize(threads=n) or CYXLA_NUM_THREADS"
    )


@pytest.mark.parametrize("value", [True, "true", 1])
def test_a_contradiction(value: Any) -> None:
    message = (
        "intra_op_threads=1 contradicts the compile option 'xla_cpu_multi_thread_eigen', which is"
        f" {value!r}; leave one of them out"
    )
    with pytest.raises(ArgumentError, match=message):
        compile_program(sine(), options={"xla_cpu_multi_thread_eigen": value}, intra_op_threads=1)


def test_another_platform() -> None:
    message = "is for the platform 'cpu', and program 'sin' was lowered for 'cuda'; leave it out"
    with pytest.raises(ArgumentError, match=message):
        compile_program(sine("cuda"), intra_op_threads=1)
