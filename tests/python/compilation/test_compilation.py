# SPDX-License-Identifier: Apache-2.0
"""`compile_program`: statistics, options, versions and error messages."""

from __future__ import annotations

import dataclasses
import gc
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from child_process import run_code
from cyxla import runtime
from cyxla.compilation import errors as compile_errors
from cyxla.compilation.compile import CompileStatistics, compile_program
from cyxla.errors import ArgumentError, CompileError, UnsupportedError
from cyxla.lowering.lower import lower
from cyxla.program import Program
from cyxla.program.versions import for_version
from support.threads import run_all

S = jax.ShapeDtypeStruct
CPU_LIBRARIES = ["pjrt_c_api_cpu_plugin.so", "libpjrt_cpu.so", "xla_cpu_pjrt.so"]


def sine(size: int = 3) -> Program:
    return lower(lambda x: jnp.sin(x) * 2, [S((size,), "f4")], platform="cpu", name="sine")


def future(program: Program) -> Program:
    """The program with a StableHLO version that no plugin knows."""
    return dataclasses.replace(program, stablehlo_version="99.0.0")


def test_statistics() -> None:
    program = lower(
        lambda a, x: jnp.tanh(a @ x), [S((64, 64), "f4"), S((64,), "f4")], platform="cpu"
    )
    executable, statistics = compile_program(program)
    assert isinstance(executable, cyxla.Executable)
    assert isinstance(statistics, CompileStatistics)
    assert 0 < statistics.seconds < 60
    assert statistics.program_bytes == len(program.stablehlo)
    assert statistics.argument_bytes == 64 * 64 * 4 + 64 * 4
    assert statistics.output_bytes == 64 * 4
    assert statistics.code_bytes is None or statistics.code_bytes > 0
    assert statistics.temporary_bytes is None or statistics.temporary_bytes >= 0
    assert statistics.flops == program.flops == 2 * 64 * 64


def test_unknown_statistics_are_none() -> None:
    _, statistics = compile_program(dataclasses.replace(sine(), flops=None))
    assert statistics.flops is None
    assert statistics.code_bytes != 0


def test_executable_has_the_signature_of_the_program() -> None:
    program = lower(lambda d: (d["a"], d["b"].sum()), [{"b": S((2, 3), "f8"), "a": S((), "i4")}])
    executable, _ = compile_program(program)
    assert executable.name == program.name
    assert executable.input_types == tuple(array.array_type for array in program.inputs)
    assert executable.output_types == tuple(array.array_type for array in program.outputs)
    assert executable.input_bytes == tuple(array.size_bytes for array in program.inputs) == (4, 48)
    assert executable.output_bytes == (4, 8)


def test_documented_example() -> None:
    run_code("""
        import jax, jax.numpy as jnp, numpy as np, cyxla as cx
        program = cx.lower(lambda x: jnp.sin(x) * 2, [jax.ShapeDtypeStruct((3,), jnp.float32)])
        executable, statistics = cx.compile_program(program)
        (result,) = executable.run([np.array([0.0, 1.0, 2.0])])
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, 2 * np.sin([0.0, 1.0, 2.0]), rtol=1e-6)
        program = cx.lower(jnp.linalg.cholesky, [jax.ShapeDtypeStruct((2, 2), jnp.float32)])
        executable, _ = cx.compile_program(program)
        (factor,) = executable.run([np.array([[4.0, 1.0], [1.0, 3.0]])])
        np.testing.assert_allclose(factor @ factor.T, [[4, 1], [1, 3]], rtol=1e-6)
    """)


# Options.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"xla_cpu_multi_thread_eigen": False},
        {"xla_backend_optimization_level": 0, "xla_cpu_enable_fast_math": np.bool_(True)},
        {"xla_backend_optimization_level": np.int32(1)},
        {"xla_dump_hlo_as_text": False, "xla_dump_to": ""},
    ],
)
def test_options_are_taken(options: dict[str, Any]) -> None:
    executable, _ = compile_program(sine(), options=options)
    np.testing.assert_allclose(executable.run([[0, 1, 2]])[0], 2 * np.sin([0, 1, 2]), rtol=1e-5)


def test_options_take_effect(tmp_path: Any) -> None:
    folder = tmp_path / "dump"
    compile_program(sine(), options={"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True})
    assert any("sine" in path.name for path in folder.iterdir())
    before = set(folder.iterdir())
    compile_program(sine())  # the options apply to that program only
    assert set(folder.iterdir()) == before


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(CompileError, match="No such compile option: 'xla_nonsense'") as caught:
        compile_program(sine(), options={"xla_nonsense": 1})
    assert "program 'sine' cannot be compiled by " in str(caught.value)
    assert runtime.runtime_info().plugin.source in str(caught.value)


def test_a_value_that_the_plugin_refuses_is_named() -> None:
    with pytest.raises(CompileError, match=r"xla_cpu_multi_thread_eigen.*'maybe'"):
        compile_program(sine(), options={"xla_cpu_multi_thread_eigen": "maybe"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xla_a": None}, "compile option 'xla_a' must be a bool, int, float or str, got NoneType"),
        ({"xla_a": (1, 2)}, r"compile option 'xla_a' must be .*, got tuple \(1, 2\)"),
        ({"xla_a": 1j}, "compile option 'xla_a' must be .*, got complex"),
        ({"xla_a": 2**63}, "compile option 'xla_a' must fit in 64 bits, got 9223372036854775808"),
        ({3: 1}, "the name of a compile option must be a string, got 3"),
        ({"": 1}, "the name of a compile option must be a string, got ''"),
        ({"\ud800": 1}, "the name of a compile option must be a string, got '\\\\ud800'"),
        ({"xla_a": "\ud800"}, "compile option 'xla_a' must be Unicode text, got '\\\\ud800'"),
        ([("xla_a", 1)], "options must be a mapping .* got list"),
    ],
)
def test_wrong_options(options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        compile_program(sine(), options=options)


def test_an_exception_of_the_plugin_in_cpp() -> None:
    message = "program 'sine'.*PJRT_Client_Compile: the plugin threw a C[+][+] exception: "
    with pytest.raises(CompileError, match=message):
        compile_program(sine(), options={"xla_cpu_parallel_codegen_split_count": -1})


# Programs that do not fit the plugin.


def test_not_a_program() -> None:
    with pytest.raises(ArgumentError, match=r"got function; cyxla\.lower makes one"):
        compile_program(lambda x: x)  # type: ignore[arg-type]


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_another_platform(platform: str) -> None:
    program = lower(jnp.sin, [S((3,), "f4")], platform=platform)
    with pytest.raises(CompileError) as caught:
        compile_program(program)
    for part in (
        f"program 'sin' was lowered for '{platform}'",
        f"{runtime.runtime_info().plugin.path}, is for 'cpu'",
        "lower it with platform='cpu'",
        f"cyxla.initialize(platform='{platform}')",
    ):
        assert part in str(caught.value)


def test_lower_takes_the_platform_of_the_loaded_plugin() -> None:
    assert runtime.runtime_info().plugin.platform == "cpu"
    assert lower(jnp.sin, [S((3,), "f4")]).platform == "cpu"


def test_an_older_reader_gets_its_own_version() -> None:
    program = lower(jax.scipy.special.erf, [S((3,), "f4")], platform="cpu")
    older = for_version(program, "1.0.0")
    assert older != program.stablehlo
    assert b"StableHLO_v1.0.0" in older
    assert f"StableHLO_v{program.stablehlo_version}".encode() in program.stablehlo
    program = dataclasses.replace(program, stablehlo=older, stablehlo_version="1.0.0")
    executable, _ = compile_program(program)
    x = np.array([0.1, 0.5, 2.0], "f4")
    np.testing.assert_allclose(executable.run([x])[0], jax.scipy.special.erf(x), rtol=1e-5)


def test_an_operation_that_an_older_version_lacks(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = lower(lambda x: x.astype("float8_e4m3"), [S((3,), "f4")], platform="cpu")
    with pytest.raises(UnsupportedError) as caught:
        for_version(program, "1.0.0")
    assert (
        f"of StableHLO {program.stablehlo_version} cannot be written as StableHLO 1.0.0: "
        in str(caught.value)
    )
    assert "failed to legalize" in str(caught.value)
    assert capfd.readouterr().err == ""
    # Text has no version, so it compiles if the plugin knows its operations.
    older = runtime.runtime_info()._replace(stablehlo_version="1.0.0")
    monkeypatch.setattr(runtime, "runtime_info", lambda: older)
    executable, statistics = compile_program(program)
    assert executable.output_types[0].dtype == program.outputs[0].dtype
    assert statistics.program_bytes == len(program.text)


def test_a_program_that_the_plugin_cannot_read() -> None:
    program = dataclasses.replace(
        future(sine()), stablehlo=b"ML\xefRjunk", text="module { nonsense.operation }"
    )
    with pytest.raises(CompileError) as caught:
        compile_program(program)
    plugin_version = runtime.runtime_info().stablehlo_version
    assert (
        f"The program is StableHLO 99.0.0 (JAX {jax.__version__}), the plugin reads up to"
        f" {plugin_version}: upgrade the plugin, or lower with an older JAX."
    ) in str(caught.value)


def test_missing_custom_calls_are_listed_with_their_functions() -> None:
    def function(a: Any) -> Any:
        call = jax.ffi.ffi_call("my_own_target", jax.ShapeDtypeStruct(a.shape, a.dtype))
        return jnp.linalg.cholesky(a) + jnp.linalg.qr(a)[0], call(a)

    program = lower(function, [S((3, 3), "f4")], platform="cpu")
    targets = ("lapack_sgeqrf_ffi", "lapack_sorgqr_ffi", "lapack_spotrf_ffi", "my_own_target")
    assert program.custom_call_targets == targets
    with pytest.raises(CompileError) as caught:
        compile_program(program)
    message = str(caught.value)
    assert "my_own_target" in message.splitlines()[0]
    for line in (
        "The program needs these custom calls, which are not registered with the plugin:",
        "  my_own_target: no handler is registered under this name",
        "Register handlers of your own with cyxla.register_ffi_target.",
    ):
        assert line in message.splitlines()
    assert "lapack" not in message  # those handlers are there


def test_the_handler_of_host_callbacks_is_not_missing() -> None:
    def function(a: Any) -> Any:
        call = jax.ffi.ffi_call("my_own_target", jax.ShapeDtypeStruct(a.shape, a.dtype))
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(a.shape, a.dtype), call(a))

    program = lower(function, [S((3,), "f4")], platform="cpu")
    assert set(program.custom_call_targets) == {"my_own_target", "xla_ffi_python_cpu_callback"}
    with pytest.raises(CompileError) as caught:
        compile_program(program)
    missing = [line for line in str(caught.value).splitlines() if line.startswith("  ")]
    assert missing == ["  my_own_target: no handler is registered under this name"]


def test_without_jaxlibs_handlers_the_error_says_why() -> None:
    output = run_code("""
        import cyxla, jax, jax.numpy as jnp
        cyxla.initialize(platform="cpu", jax_targets=False)
        program = cyxla.lower(jnp.linalg.eigh, [jax.ShapeDtypeStruct((3, 3), "f8")])
        try:
            cyxla.compile_program(program)
        except cyxla.CompileError as error:
            print(error)
    """)
    missing = "lapack_dsyevd_ffi (jnp.linalg.eigh): no handler is registered under this name"
    assert f"  {missing}\n" in output
    reason = "handlers are registered with the plugin: initialized with jax_targets=False."
    assert f"0 of jaxlib's {reason}" in output


@pytest.mark.parametrize(
    ("target", "functions"),
    [
        ("cusolver_potrf_ffi", "jnp.linalg.cholesky"),
        ("lapack_zgeev_ffi", "jnp.linalg.eig"),
        ("cu_threefry2x32_ffi", "jax.random"),
        ("lapack_dtrsm_ffi", "solve_triangular"),
    ],
)
def test_functions_behind_targets(target: str, functions: str) -> None:
    assert compile_errors.describe_target(target).startswith(f"{target} (")
    assert functions in compile_errors.describe_target(target)


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_every_cpu_plugin(library: str) -> None:
    (path,) = (p.path for p in cyxla.available_plugins() if p.path.name == library)
    output = run_code(
        """
        import jax, jax.numpy as jnp, numpy as np, cyxla
        from jax.scipy import special
        x = np.linspace(0.1, 0.9, 6, dtype="f4")
        def call(function):
            program = cyxla.lower(function, [jax.ShapeDtypeStruct((6,), "f4")])
            return cyxla.compile_program(program)[0].run([x])
        functions = [special.erf, special.erfinv, special.gammaln, special.digamma, jnp.arcsin,
                     jnp.sinh, jnp.tan, lambda v: jax.lax.top_k(v, 3), jnp.fft.rfft, jnp.sort,
                     jax.grad(lambda v: jax.nn.softmax(v @ jnp.outer(v, v))[0])]
        for function in functions:
            for got, wanted in zip(call(function), jax.tree.leaves(jax.jit(function)(x))):
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6)
        print("equal", cyxla.runtime_info().plugin.path)
        """,
        env={"CYXLA_PJRT_PLUGIN": str(path)},
    )
    assert output.split() == ["equal", str(path)]


# Threads and lifetime.


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_a_program_file_whose_types_contradict_its_stablehlo(library: str) -> None:
    (path,) = (p.path for p in cyxla.available_plugins() if p.path.name == library)
    printed = run_code(
        """
        import dataclasses, tempfile
        import jax, jax.numpy as jnp, numpy as np, cyxla
        from cyxla.dtypes import ArrayType
        pair = [jax.ShapeDtypeStruct((3,), jnp.float32)] * 2
        program = cyxla.lower(lambda x, y: x + y, pair, name="f")
        path = tempfile.mkdtemp() + "/f.cyxla"
        x, y = program.inputs
        integers = cyxla.ProgramArray.of("x", ArrayType(cyxla.ElementType.S32, (3,)))
        row = cyxla.ProgramArray.of("y", ArrayType(cyxla.ElementType.F32, (1, 3)))
        for inputs in ((integers, y), (x, row), (x,)):
            dataclasses.replace(program, inputs=inputs).save(path)
            for settings in ({}, {"outputs_in_place": True}, {"route": "pjrt"}):
                try:
                    cyxla.compile_program(cyxla.Program.load(path), **settings)
                    print("compiled")
                except cyxla.CompileError as error:
                    print(str(error).partition(".so: ")[2])
        program.save(path)
        cyxla.compile_program(cyxla.Program.load(path))
        """,
        env={"CYXLA_PJRT_PLUGIN": str(path)},
    )
    expected = [
        "input 0 of the compiled program f is F32[3], but its signature declares S32[3]",
        "input 1 of the compiled program f is F32[3], but its signature declares F32[1,3]",
        "the compiled program f has 2 inputs, but its signature declares 1",
    ]
    in_place = "the compiled program f has 3 inputs, but its signature declares 2"
    lines = [line.removesuffix("; lower the function again") for line in printed.splitlines()]
    assert lines == [
        line
        for refusal in expected
        for line in (refusal, in_place if refusal == expected[2] else refusal, refusal)
    ]


def test_threads_compile_at_once() -> None:
    results: list[Any] = [None] * 4

    def work(index: int) -> None:
        program = lower(lambda x: x * index, [S((5,), "f4")])
        results[index] = compile_program(program)[0].run([np.ones(5)])[0]

    run_all(*(partial(work, index) for index in range(len(results))))
    assert [result.tolist() for result in results] == [[index] * 5 for index in range(4)]


def test_the_executable_outlives_its_program() -> None:
    executable, _ = compile_program(sine())
    gc.collect()
    np.testing.assert_allclose(executable.run([[0, 1, 2]])[0], 2 * np.sin([0, 1, 2]), rtol=1e-6)
