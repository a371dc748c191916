# SPDX-License-Identifier: Apache-2.0
"""A plugin of jaxlib's version gives the bits of `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest
from jax import lax

import cyxla
from cpu_plugins import CPU_LIBRARIES, run_with_plugin, variables
from cyxla.compilation import debug_options
from cyxla.plugins.packages import installed_library_at

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "softmax of a product": (lambda x: jax.nn.softmax(x @ x.T), (256, 64)),
    "product": (lambda x: x @ x, (512, 512)),
    "elementwise": (lambda x: (jnp.tanh(x), jnp.exp(x), jnp.log(x * x), jnp.sin(x)), (4096,)),
    "large sum": (jnp.sum, (262_144,)),
    "loop": (lambda x: lax.fori_loop(0, 2000, lambda i, a: jnp.sin(a) + 0.1, x), (64,)),
    "sort": (jnp.sort, (5000,)),
}
_FIRST = CPU_LIBRARIES[0]
# The default CPU plugin's distribution has the version of the jaxlib it is built from.
IS_OWN_VERSION = metadata.version("lammps-jax-pjrt-cpu") == jaxlib.__version__


def path_of(library: str) -> Any:
    return Path(variables(library)[cyxla.PLUGIN_ENVIRONMENT_VARIABLE])


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_jit(name: str) -> None:
    function, shape = PROGRAMS[name]
    x = np.random.default_rng(1).normal(size=shape).astype("f4")
    program = cyxla.lower(function, [x])
    executable, _ = cyxla.compile_program(program, exact=True)
    wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(x))]
    for got, right in zip(executable.run([x]), wanted, strict=True):
        if IS_OWN_VERSION:
            assert got.tobytes() == right.tobytes()
        else:  # rounding differs between versions of XLA
            scale = float(np.abs(right).max())
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5 * scale)


def test_only_a_plugin_of_the_same_version_is_given_options() -> None:
    libraries = [installed_library_at(path_of(name)) for name in CPU_LIBRARIES]
    given = [bool(debug_options.jaxlib_compile_options(library)) for library in libraries]
    assert given == [IS_OWN_VERSION, False, False]
    assert debug_options.jaxlib_compile_options(None) == b""


def test_overrides_go_over_them() -> None:
    printed = run_with_plugin(
        _FIRST,
        """
        import cyxla, jax, jax.numpy as jnp
        program = cyxla.lower(lambda x: jnp.tanh(x @ x), [jax.ShapeDtypeStruct((300, 300), "f4")])
        count = lambda **options: cyxla.compile_program(program, **options)[1].instructions
        without = {"xla_disable_hlo_passes": "fusion,cpu-instruction-fusion,algsimp,dot_decomposer",
                   "xla_cpu_experimental_ynn_fusion_type": ""}
        print(count(), count(options=without))
        """,
    )
    usual, overridden = map(int, printed.split())
    assert usual != overridden
