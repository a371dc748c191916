# SPDX-License-Identifier: Apache-2.0
"""Programs of small matrices are compiled a second time, and the faster form is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from cpu_plugins import CPU_LIBRARIES, run_with_plugin
from cyxla import small_matrices

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


@pytest.mark.parametrize("check", ["_agree", "_is_faster"])
def test_a_form_that_is_wrong_or_slow_is_dropped(
    check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_matrices, check, lambda *arguments: False)
    executable, _ = cyxla.compile_program(lowered())
    assert executable.route == "pjrt"


def test_other_results_are_seen() -> None:
    program = lowered()
    right, _ = cyxla.compile_program(program, exact=True)
    other, _ = cyxla.compile_program(lowered(lambda a, b: jnp.tanh(a @ b) * (1 + 1e-9)))
    same, _ = cyxla.compile_program(program)
    assert small_matrices._agree(program, right, same)
    assert not small_matrices._agree(program, right, other)
    assert small_matrices._is_faster(program, same, right)
    assert not small_matrices._is_faster(program, right, same)


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (product, 256),  # the library is faster
        (lambda a, b: jax.lax.scan(lambda c, _: (jnp.tanh(c @ b), None), a, length=3)[0], 8),
    ],
)
def test_large_matrices_and_loops_are_left_alone(
    function: Callable[..., Any], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unexpected(*arguments: object) -> bool:
        raise AssertionError("compiled a second time")

    monkeypatch.setattr(small_matrices, "_agree", unexpected)
    cyxla.compile_program(lowered(function, size))


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
