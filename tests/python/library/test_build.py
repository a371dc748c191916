# SPDX-License-Identifier: Apache-2.0
"""Libraries that are built, linked and called, and those that are refused."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from cyxla.library import source
from support.programs.functions import rosenbrock

TARGETS = (
    "aarch64-linux-gnu",
    "riscv64-linux-gnu",
    "armv7-unknown-linux-gnueabihf",
    "x86_64-w64-windows-gnu",
    "wasm32-unknown-unknown",
)


def lower(function: Callable[..., Any], *shapes: Any, name: str | None = None) -> cyxla.Program:
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    return cyxla.lower(function, arguments, platform="cpu", name=name)


def cost(x: Any, p: Any) -> dict[str, Any]:
    value, gradient = jax.value_and_grad(lambda x: p[0] * rosenbrock(x))(x)
    return {"gradient": gradient, "value": value}


@pytest.fixture(scope="module")
def program() -> cyxla.Program:
    return lower(cost, ((4,), "f8"), ((1,), "f8"))


class Loaded:
    """The functions of a shared library, called through their descriptors."""

    def __init__(self, library: cyxla.Library) -> None:
        self.library = library
        self._handle = ctypes.CDLL(str(library.path))

    def __call__(self, name: str, *inputs: Any, missing: tuple[int, ...] = ()) -> list[Any]:
        function = self.library.functions[name]
        outputs = [np.full(each.array.shape, 7, each.array.dtype) for each in function.outputs]
        arrays = [
            np.array(value, each.array.dtype)
            for value, each in zip(inputs, function.inputs, strict=True)
        ]
        workspace = cyxla.aligned_empty((max(function.workspace_bytes, 1),), np.uint8)
        addresses = [array.ctypes.data for array in arrays]
        addresses += [
            None if i in missing else array.ctypes.data for i, array in enumerate(outputs)
        ]
        if function.workspace_bytes:
            addresses.append(workspace.ctypes.data)
        call = getattr(self._handle, name)
        call.restype = None
        call(*(ctypes.c_void_p(address) for address in addresses))
        return outputs


def assert_equal(program: cyxla.Program, loaded: Loaded, name: str, *inputs: Any) -> None:
    executable = cyxla.compile_program(program, exact=True).executable
    arrays = [
        np.asarray(value, each.dtype) for value, each in zip(inputs, program.inputs, strict=True)
    ]
    for wanted, found in zip(executable.run(arrays), loaded(name, *inputs), strict=True):
        assert wanted.tobytes() == found.tobytes()


MAIN = """
#include <stdio.h>
#include "model.h"

int main(void) {
  const double x[4] = {0.5, 1, 2, -1}, p[1] = {3};
  double gradient[4], value, again[4];
  const void *in[2];
  void *out[2];
  in[0] = x; in[1] = p; out[0] = again; out[1] = &value;
  if (!model_cpu_ok()) return 1;
  cost(x, p, gradient, &value);
  const cyxla_library_function *function = cost_function();
  function->call(in, out, NULL);
  printf("%a %a %a %a %a\\n", value, gradient[0], again[1], gradient[2], again[3]);
  printf("%s %s %d %d %d\\n", function->name, function->outputs[1].name,
         (int)function->num_inputs, (int)function->inputs[0].dimensions[0],
         (int)function->outputs[0].size_bytes);
  return 0;
}
"""


@pytest.mark.parametrize("standard", ["c99", "c++20"])
@pytest.mark.parametrize("suffix", [".o", ".a", ".so"])
def test_a_c_program_calls_the_library(
    program: cyxla.Program, tmp_path: Path, standard: str, suffix: str
) -> None:
    library = cyxla.build_library(program, tmp_path / f"model{suffix}")
    language = "c++" if "+" in standard else "c"
    source = tmp_path / "main.c"
    source.write_text(MAIN)
    compiler = {"c": "cc", "c++": "c++"}[language]
    command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command += ["-x", language, str(source), "-x", "none", str(library.path), "-lm"]
    subprocess.run([*command, "-o", str(tmp_path / "main")], check=True, timeout=100)
    printed = subprocess.check_output([tmp_path / "main"], text=True, timeout=20)
    numbers, description = printed.splitlines()
    executable = cyxla.compile_program(program, exact=True).executable
    gradient, value = executable.run([np.array([0.5, 1, 2, -1]), np.array([3.0])])
    assert [float.fromhex(text) for text in numbers.split()] == [float(value), *gradient]
    assert description == "cost value 2 4 32"


def test_what_it_returns(program: cyxla.Program, tmp_path: Path) -> None:
    library = cyxla.build_library({"model": program}, tmp_path / "m.o", name="robot")
    assert library.path == tmp_path / "m.o"
    assert library.header == tmp_path / "m.h"
    assert library.size_bytes == (tmp_path / "m.o").stat().st_size < 8000
    assert library.undefined_symbols == ()
    (function,) = library.functions.values()
    assert function.name == "robot_model"
    assert [each.name for each in function.inputs] == ["x", "p"]
    assert [each.name for each in function.outputs] == ["gradient", "value"]
    assert function.workspace_bytes == 0
    assert function.num_trials == 256
    text = library.header.read_text()
    assert "const double x[CYXLA_RESTRICT 4]" in text
    assert "double *CYXLA_RESTRICT value" in text


def test_what_a_static_library_needs_and_defines(tmp_path: Path) -> None:
    program = lower(lambda x: jnp.cumsum(jnp.exp2(jnp.tan(x))), ((300,), "f8"), name="f")
    library = cyxla.build_library(program, tmp_path / "libf.a")
    printed = subprocess.run(
        ["nm", library.path], capture_output=True, text=True, timeout=20, check=True
    ).stdout
    symbols = [line.split()[-2:] for line in printed.splitlines() if len(line.split()) > 1]
    assert {name for kind, name in symbols if kind == "U"} == set(library.undefined_symbols)
    assert {name for kind, name in symbols if kind == "T"} == {"f", "f_function", "libf_cpu_ok"}


def test_the_same_programs_give_the_same_bytes(program: cyxla.Program, tmp_path: Path) -> None:
    contents = set()
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        library = cyxla.build_library(program, folder / "libmodel.a")
        contents.add((library.path.read_bytes(), library.header.read_bytes()))
    assert len(contents) == 1


def test_several_programs_of_every_kind(tmp_path: Path) -> None:
    """Loops, conditionals, copies, constants, libraries' functions, two kernels of one name."""

    def loop(x: Any) -> Any:
        return jax.lax.while_loop(
            lambda s: s[1] < 9, lambda s: (jnp.sin(s[0]) + x, s[1] + 1), (x, 0)
        )

    def branch(i: Any, x: Any) -> Any:
        return jax.lax.switch(i, [jnp.sin, lambda x: x * x, lambda x: jnp.cumsum(x)[::-1]], x)

    weights = np.arange(12.0).reshape(3, 4)
    programs = {
        "loop": lower(loop, ((3,), "f8")),
        "branch": lower(branch, ((), "i4"), ((5,), "f8")),
        "product": lower(lambda x: jnp.tanh(weights @ x), ((4,), "f8")),
        "transposed": lower(lambda x: (x.T, x), ((3, 4), "f4")),
        "counts": lower(lambda x: (x > 0, jnp.sum(x), x.astype("c16") * 1j), ((6,), "i8")),
    }
    library = cyxla.build_library(programs, tmp_path / "all.so")
    loaded = Loaded(library)
    rng = np.random.default_rng(1)
    assert_equal(programs["loop"], loaded, "loop", rng.normal(size=3))
    for index in (-1, 0, 1, 2, 7):
        assert_equal(programs["branch"], loaded, "branch", index, rng.normal(size=5))
    assert_equal(programs["product"], loaded, "product", rng.normal(size=4))
    assert_equal(programs["transposed"], loaded, "transposed", rng.normal(size=(3, 4)))
    assert_equal(programs["counts"], loaded, "counts", rng.integers(-5, 5, 6))
    assert set(library.undefined_symbols) <= {"sin", "memcpy", "memset"}


def test_large_temporaries_lie_in_the_callers_workspace(tmp_path: Path) -> None:
    def wide(x: Any) -> Any:
        pairs = x[:, None] - x[None, :]
        return jnp.cumsum(jnp.cumsum(pairs, axis=0), axis=1)[::7, ::7]

    program = lower(wide, ((70,), "f8"), name="wide")
    library = cyxla.build_library(program, tmp_path / "wide.so")
    assert library.functions["wide"].workspace_bytes >= 70 * 70 * 8
    assert "void *CYXLA_RESTRICT workspace" in library.header.read_text()
    assert_equal(program, Loaded(library), "wide", np.linspace(-1, 2, 70))


def test_an_optional_output_may_be_null(program: cyxla.Program, tmp_path: Path) -> None:
    library = cyxla.build_library(program, tmp_path / "model.so", optional=["gradient"])
    loaded = Loaded(library)
    x, p = np.array([0.5, 1, 2, -1]), np.array([3.0])
    gradient, value = loaded("cost", x, p)
    skipped, alone = loaded("cost", x, p, missing=(0,))
    assert alone == value
    assert (skipped == 7).all()
    assert not (gradient == 7).any()
    assert "gradient: out, float64, 4, result['gradient']; may be NULL" in (
        library.header.read_text()
    )


def test_a_large_optional_output_needs_a_workspace(tmp_path: Path) -> None:
    program = lower(lambda x: (x * 3, x[:2] * 2), ((5000,), "f8"), name="f")
    library = cyxla.build_library(program, tmp_path / "f.so", optional=["result_0", "result_1"])
    assert 40_000 <= library.functions["f"].workspace_bytes < 41_000
    x = np.arange(5000.0)
    _, second = Loaded(library)("f", x, missing=(0,))
    assert second.tolist() == [0, 2]
    first, _ = Loaded(library)("f", x, missing=(1,))
    assert (first == 3 * x).all()


def test_a_processor_without_fma_is_named_as_slow(program: cyxla.Program, tmp_path: Path) -> None:
    library = cyxla.build_library(program, tmp_path / "slow.o", cpu="x86-64-v2")
    assert library.undefined_symbols == ("fma",)
    assert "no instruction for a fused multiply-add" in " ".join(
        library.header.read_text().replace(" * ", "").split()
    )


def test_subnormal_numbers_are_flushed_on_request(tmp_path: Path) -> None:
    program = lower(lambda x: x * np.float32(0.25), ((3,), "f4"), name="quarter")
    x = np.array([2e-38, -1e-40, 1], np.float32)
    plain = Loaded(cyxla.build_library(program, tmp_path / "plain.so"))
    flushing = Loaded(cyxla.build_library(program, tmp_path / "flush.so", flush_subnormals=True))
    (found,) = flushing("quarter", x)
    assert found.tolist() == [0, 0, 0.25]
    assert_equal(program, flushing, "quarter", x)
    cyxla.build_library(
        program, tmp_path / "quarter.o", flush_subnormals=True, target="aarch64-linux-gnu"
    )
    # The caller's state is as before.
    (found,) = plain("quarter", x)
    assert (found[:2] != 0).all()
    assert x[1] * np.float32(0.5) != 0


def test_arrays_at_any_address(program: cyxla.Program, tmp_path: Path) -> None:
    library = cyxla.build_library(program, tmp_path / "model.so")
    function = ctypes.CDLL(str(library.path)).cost
    function.restype = None
    x, p = np.array([0.5, 1, 2, -1]), np.array([3.0])
    wanted = Loaded(library)("cost", x, p)
    memory = cyxla.aligned_empty((32,), np.float64)
    for offset in range(8):
        memory[:] = 7
        memory[offset : offset + 4], memory[offset + 4] = x, p[0]
        addresses = [memory.ctypes.data + 8 * (offset + place) for place in (0, 4, 5, 9)]
        function(*map(ctypes.c_void_p, addresses))
        assert (memory[offset + 5 : offset + 9] == wanted[0]).all()
        assert memory[offset + 9] == wanted[1]
        assert (memory[offset + 10 :] == 7).all()


@pytest.mark.parametrize("target", TARGETS)
def test_objects_for_other_machines(program: cyxla.Program, tmp_path: Path, target: str) -> None:
    sine = lower(lambda x: jnp.sin(x) * 2, ((), "f8"), name="sine")
    library = cyxla.build_library([program, sine], tmp_path / "model.o", target=target)
    needed = {"sin", "fma"} if target.startswith("wasm") else {"sin"}
    assert set(library.undefined_symbols) == needed
    assert f"for {target}" in " ".join(library.header.read_text().replace(" * ", "").split())


REFUSALS: Mapping[str, tuple[dict[str, Any], type[cyxla.Error], str]] = {
    "suffix": ({"path": "model"}, cyxla.ArgumentError, r"must end in \.o, \.a, \.so"),
    "folder": ({"path": "missing/model.o"}, cyxla.ArgumentError, "'.*missing' does not exist"),
    "empty": ({"programs": []}, cyxla.ArgumentError, "programs is empty"),
    "no program": ({"programs": [3]}, cyxla.ArgumentError, "has int '' instead of"),
    "no list": ({"programs": 3}, cyxla.ArgumentError, r"a list of them or a dict .*, not int"),
    "name": ({"programs": {"2x": None}}, cyxla.ArgumentError, "cannot be called '2x'"),
    "keyword": ({"programs": {"double": None}}, cyxla.ArgumentError, "cannot be called 'double'"),
    "name type": ({"programs": {3: None}}, cyxla.ArgumentError, "must be a str, not 3"),
    "prefix": ({"name": "a-b"}, cyxla.ArgumentError, "cannot be called 'a-b_cost'"),
    "twice": (
        {"programs": [None, None]},
        cyxla.ArgumentError,
        "two functions would be called 'cost'",
    ),
    "descriptor": (
        {"programs": {"f": None, "f_function": None}},
        cyxla.ArgumentError,
        "two functions would be called 'f_function'",
    ),
    "a function of C": ({"programs": {"sinf": None}}, cyxla.ArgumentError, "replace the C lib"),
    "optional": (
        {"optional": ["hessian"]},
        cyxla.ArgumentError,
        "no output is called 'hessian'; the outputs are gradient, value",
    ),
    "target": ({"target": "pdp11"}, cyxla.LibraryError, "'pdp11': .* give a triple such as"),
    "native": (
        {"target": "aarch64-linux-gnu", "cpu": "native"},
        cyxla.LibraryError,
        "the target is 'aarch64-linux-gnu'",
    ),
    "flushing": (
        {"target": "riscv64-linux-gnu", "flush_subnormals": True},
        cyxla.LibraryError,
        "flush_subnormals is for x86_64 and aarch64, not for riscv64",
    ),
    "linker": (
        {"path": "model.so", "linker": "no-such-ld"},
        cyxla.LibraryError,
        "linker 'no-such-ld' is not on PATH",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_and_nothing_is_left(
    program: cyxla.Program, tmp_path: Path, case: str
) -> None:
    arguments, error, message = REFUSALS[case]
    arguments = {"programs": program, "path": "model.o", **arguments}
    # A None stands for the program.
    given = arguments.pop("programs")
    if isinstance(given, dict):
        given = {name: program if each is None else each for name, each in given.items()}
    elif isinstance(given, list):
        given = [program if each is None else each for each in given]
    path = tmp_path / arguments.pop("path")
    with pytest.raises(error, match=message):
        cyxla.build_library(given, path, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_only_the_plugin_runs_is_named(tmp_path: Path) -> None:
    program = lower(jnp.sort, ((30,), "f8"), name="sorted")
    with pytest.raises(cyxla.LibraryError, match=r"'sorted' cannot be built .* is a sort"):
        cyxla.build_library(program, tmp_path / "sorted.o")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_small_matrix_products_need_another_order_of_sums(tmp_path: Path, dtype: str) -> None:
    def perceptron(a: Any, b: Any, x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ a) @ b)

    shapes = [((8, 16), dtype), ((16, 4), dtype), ((5, 8), dtype)]
    program = lower(perceptron, *shapes, name="perceptron")
    with pytest.raises(cyxla.LibraryError, match="only the plugin runs; exact=False builds small"):
        cyxla.build_library(program, tmp_path / "p.so")
    loaded = Loaded(cyxla.build_library(program, tmp_path / "p.so", exact=False))
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=shape).astype(dtype) for shape, _ in shapes]
    executable = cyxla.compile_program(program, exact=True).executable
    for wanted, found in zip(executable.run(inputs), loaded("perceptron", *inputs), strict=True):
        tolerance = {"f4": 1e-5, "f8": 1e-10}[dtype] * np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)


def test_a_large_product_is_refused_also_then(tmp_path: Path) -> None:
    program = lower(lambda a: a @ a, ((200, 200), "f8"), name="square")
    with pytest.raises(cyxla.LibraryError, match=r"'square' cannot be built .* matrix product"):
        cyxla.build_library(program, tmp_path / "p.o", exact=False)


def test_a_program_that_calls_python_is_refused(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((), "f4"), x)

    program = lower(function, ((), "f4"), name="calls")
    with pytest.raises(cyxla.LibraryError, match="'calls' calls back into Python"):
        cyxla.build_library(program, tmp_path / "calls.o")


@pytest.mark.parametrize("fault", ["a slice is shifted", "a kernel is wrong", "a step is left out"])
def test_a_planted_error_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    program = lower(lambda x: jnp.cumsum(jnp.sin(x) - x * 3), ((6,), "f8"), name="f")
    original = source.write_function

    def wrong(name: str, plan: Any, kernels: dict[str, str], optional: Any) -> Any:
        if fault == "a slice is shifted":
            step = plan.steps[-1]
            first = step.slices[0]._replace(offset=8, size_bytes=step.slices[0].size_bytes - 8)
            step = step._replace(slices=(first, *step.slices[1:]))
            plan = plan._replace(steps=(*plan.steps[:-1], step))
        elif fault == "a step is left out":
            plan = plan._replace(steps=plan.steps[:-1])
            kernels = {step.kernel: kernels[step.kernel] for step in plan.steps}
        else:
            kernels = {symbol: text.replace("fsub", "fadd") for symbol, text in kernels.items()}
        return original(name, plan, kernels, optional)

    monkeypatch.setattr(source, "write_function", wrong)
    with pytest.raises(cyxla.LibraryError, match=r"'f' does not give the program's results"):
        cyxla.build_library(program, tmp_path / "f.o")
    assert list(tmp_path.iterdir()) == []
