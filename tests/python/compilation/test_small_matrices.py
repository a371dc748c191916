# SPDX-License-Identifier: Apache-2.0
"""Whether a program of small matrices is compiled twice depends on the program only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from cpu_plugins import CPU_LIBRARIES, run_with_plugin
from cyxla.compilation import settings as compile_settings, small_matrices

S = jax.ShapeDtypeStruct


def product(a: Any, b: Any) -> Any:
    return jnp.tanh(a @ b)


def lowered(function: Callable[..., Any] = product, size: int = 8) -> cyxla.Program:
    shape = S((size, size), jnp.float64)
    return cyxla.lower(function, [shape, shape])


def test_products_become_kernels() -> None:
    program = lowered()
    exact, first = cyxla.compile_program(program, exact=True)
    assert exact.route == "pjrt"
    assert "which only the plugin runs" in exact.route_reason
    executable, both = cyxla.compile_program(program)
    assert executable.route == "direct"
    assert executable.route_reason == small_matrices.REASON
    assert both.seconds > 0
    assert first.flops == both.flops
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(8, 8)) for _ in range(2)]
    with jax.enable_x64(True):
        wanted = np.asarray(jax.jit(product)(*arrays))
    for each in (exact, executable):
        np.testing.assert_allclose(each.run(arrays)[0], wanted, rtol=1e-13)


def test_direct_may_be_insisted_on() -> None:
    executable, _ = cyxla.compile_program(lowered(), route="direct")
    assert executable.route == "direct"
    with pytest.raises(cyxla.UnsupportedError, match=r"product.*cannot be called directly: step 1"):
        cyxla.compile_program(lowered(), route="direct", exact=True)


@pytest.mark.parametrize("arguments", [{"route": "pjrt"}, {"exact": True}])
def test_the_default_program_may_be_kept(arguments: dict[str, Any]) -> None:
    executable, _ = cyxla.compile_program(lowered(), **arguments)
    assert executable.route == "pjrt"


def test_exact_must_be_a_bool() -> None:
    with pytest.raises(cyxla.ArgumentError, match="exact must be a bool, got 1"):
        cyxla.compile_program(lowered(), exact=1)  # type: ignore[arg-type]


def test_a_form_that_is_wrong_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_matrices, "_agree", lambda *arguments: False)
    executable, statistics = cyxla.compile_program(lowered())
    assert executable.route == "pjrt"
    assert statistics.second_form_seconds is not None
    assert 0 < statistics.second_form_seconds < statistics.seconds
    assert executable.statistics == statistics


def test_other_results_are_seen() -> None:
    program = lowered()
    right, _ = cyxla.compile_program(program, exact=True)
    other, _ = cyxla.compile_program(lowered(lambda a, b: jnp.tanh(a @ b) * (1 + 1e-9)))
    same, _ = cyxla.compile_program(program)
    assert small_matrices._agree(program, right, same)
    assert not small_matrices._agree(program, right, other)


def products(count: int) -> Callable[..., Any]:
    return lambda a, b: tuple((a * (i + 1.5)) @ b for i in range(count))


def scan(a: Any, b: Any) -> Any:
    return jax.lax.scan(lambda c, _: (jnp.tanh(c @ b), None), a, length=3)[0]


def wide(a: Any, b: Any) -> Any:
    return a @ b, jnp.sin(jnp.exp(jnp.arange(10_000.0) * a[0, 0]))


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (product, 33),  # XLA does not make it a kernel
        (scan, 8),
        (wide, 8),  # computes so much that the cost of the call does not matter
        (products(12), 8),  # takes long to compile
        (products(4), 20),
        (lambda a, b: (a @ b, jnp.sort(a[0])), 8),
        (lambda a, b: a.T @ b.T, 8),
        (
            jax.grad(lambda w, x: jnp.tanh(x @ w).sum()),
            8,
        ),  # a transposed product is a product
    ],
)
def test_a_program_without_gain_is_compiled_once(function: Callable[..., Any], size: int) -> None:
    executable, statistics = cyxla.compile_program(lowered(function, size))
    assert executable.route == "pjrt"
    assert statistics.second_form_seconds is None


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (product, 4),
        (product, 32),
        (products(6), 8),
        (lambda a, b: a.T @ b, 8),
        (lambda a, b: a @ b.T, 8),
        (lambda a, b: jnp.einsum("ij,jk->ik", a, b) + a[0] @ b, 8),
    ],
)
def test_a_faster_form_is_kept(function: Callable[..., Any], size: int) -> None:
    executable, statistics = cyxla.compile_program(lowered(function, size))
    assert executable.route == "direct"
    assert executable.route_reason == small_matrices.REASON
    assert statistics.second_form_seconds is not None
    assert 0 < statistics.second_form_seconds < statistics.seconds


def test_a_second_form_that_cannot_be_compiled_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    option = {"xla_there_is_no_such_option": True}
    for_small_matrices = compile_settings.Settings.for_small_matrices

    def broken(settings: compile_settings.Settings) -> compile_settings.Settings | None:
        second = for_small_matrices(settings)
        assert second is not None
        return second._replace(overrides={**second.overrides, **option})

    monkeypatch.setattr(compile_settings.Settings, "for_small_matrices", broken)
    executable, statistics = cyxla.compile_program(lowered())
    assert executable.route == "pjrt"
    assert statistics.second_form_seconds is not None


def test_the_rule_is_bounded_by_the_size_of_the_program() -> None:
    def facts(count: int, rows: float, instructions: int) -> dict[str, Any]:
        product = (12, 1.0, rows, 8.0, 8.0, False, False)
        return {
            "products": [product] * count,
            "obstacles": [],
            "instructions": instructions,
            "work": 1000.0,
        }

    def most(rows: float, instructions: int) -> int:
        """The greatest number of products that is compiled twice."""
        counts = [
            n for n in range(1, 400) if small_matrices._pays(facts(n, rows, instructions), "")
        ]
        return max(counts)

    assert [most(8, 10), most(8, 1000)] == [6, 25]
    assert [most(20, 10), most(20, 1000)] == [2, 8]


def test_results_and_routes_are_the_same_in_fresh_processes_under_load() -> None:
    script = Path(__file__).parents[2] / "soak" / "fresh_processes.py"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )

    ended = run("6")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.endswith("soak: one answer of 6 fresh processes\n")
    forms = [line for line in ended.stdout.splitlines() if "second form" in line]
    assert len(forms) == 20
    assert {"second form True", "second form False"} == {
        part for line in forms for part in line.split(", ") if part.startswith("second form")
    }
    planted = run("3", "--planted", "random")
    assert planted.returncode == 1, planted.stdout + planted.stderr
    assert "soak: FAILED" in planted.stdout


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_on_every_plugin(library: str) -> None:
    code = """
        import jax, jax.numpy as jnp, numpy as np, cyxla
        jax.config.update("jax_enable_x64", True)
        shape = jax.ShapeDtypeStruct((6, 6), jnp.float64)
        function = jax.value_and_grad(lambda a, b: jnp.tanh(a @ b @ a.T).sum(), (0, 1))
        program = cyxla.lower(function, [shape, shape])
        forms = [cyxla.compile_program(program, exact=exact)[0] for exact in (True, False)]
        arrays = list(np.random.default_rng(3).normal(size=(2, 6, 6)))
        wanted = jax.tree.leaves(jax.jit(function)(*arrays))
        for form in forms:
            for got, expected in zip(form.run(arrays), wanted, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)
        print(forms[0].route, forms[1].route)
    """
    assert run_with_plugin(library, code).split()[0] == "pjrt"
