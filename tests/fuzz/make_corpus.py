# SPDX-License-Identifier: Apache-2.0
"""Write the fuzzer's seed corpus: small programs, compiled by each installed CPU plugin.

    python make_corpus.py FOLDER

Writes one file per program and plugin, in the format of input.h. Needs an installed cyxla. Each
plugin runs in its own process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cyxla

_TIME_LIMIT_SECONDS = 300


def _programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return functions and their example arrays, which cover every kind of step and constant."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    def rosenbrock(x: Any) -> Any:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def newton(x: Any) -> Any:
        return lax.while_loop(
            lambda y: jnp.abs(y * y - x).sum() > 1e-3, lambda y: 0.5 * (y + x / y), x
        )

    def scan(x: Any) -> Any:
        return lax.scan(lambda y, a: (jnp.sin(y) * a, y.sum()), x, jnp.arange(5.0))

    def perceptron(w: Any, x: Any) -> Any:
        return jax.value_and_grad(lambda w: jnp.tanh(x @ w).sum())(w)

    def lennard_jones(x: Any) -> Any:
        squares = ((x[:, None] - x[None]) ** 2).sum(-1) + jnp.eye(len(x))
        return (squares**-6 - squares**-3).sum()

    f64 = np.float64
    vector, matrix, long = np.ones(5, f64), np.ones((4, 4), f64), np.ones(40, np.float32)
    pair, counts = np.ones((3, 2), f64), np.arange(6, dtype=np.int32)
    table = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    return {
        "documented": (lambda x: jnp.sin(x) * 2, (long,)),
        "rosenbrock": (jax.value_and_grad(rosenbrock), (vector,)),
        "exponential": (lambda x, y: (jnp.exp(x) + y, jnp.power(y, x)), (vector, vector)),
        "logarithm": (lambda x: (jnp.log(x), jnp.log1p(x), jnp.tanh(x)), (vector,)),
        "remainder": (jnp.fmod, (vector, vector)),
        "sum": (lambda x: x.sum(axis=0), (matrix,)),
        "matrix_vector": (lambda a, x: jnp.tanh(a @ x), (matrix, np.ones(4, f64))),
        "perceptron": (perceptron, (pair, np.ones((2, 3), f64))),
        "lennard_jones": (jax.grad(lennard_jones), (pair,)),
        "newton": (newton, (vector,)),
        "fori": (lambda x: lax.fori_loop(0, 7, lambda i, y: y * 0.5 + i, x), (vector,)),
        "scan": (scan, (vector,)),
        "conditional": (
            lambda p, x: lax.cond(p, lambda y: y @ y, lambda y: y * 2, x),
            (np.bool_(True), matrix),
        ),
        "switch": (
            lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y[::-1]], x),
            (np.int32(1), vector),
        ),
        "transpose": (lambda x: (jnp.transpose(x, (2, 0, 1)), x.sum(0) @ x[0].T), (table,)),
        "copies": (lambda x, y: (x, y, x.reshape(2, 3).T.ravel()), (np.ones(6, f64), vector)),
        "constants": (
            lambda x: (x + np.linspace(0, 1, 5), np.arange(4, dtype=np.int64), jnp.float32(2.5)),
            (vector,),
        ),
        "integers": (lambda n: (n // 3, n % 4, n << 1, (n > 2) & (n != 5)), (counts,)),
        "bytes": (
            lambda a, b: (a + np.arange(3, dtype=np.uint8), ~b & np.array([True, False])),
            (np.ones(3, np.uint8), np.ones(2, np.bool_)),
        ),
        "halves": (
            lambda x: (x * x + np.arange(5, dtype=np.float16), x.astype(jnp.bfloat16)),
            (np.ones(5, np.float16),),
        ),
        "complex": (lambda z: (z * (1 + 2j), jnp.abs(z)), (np.ones(4, np.complex128),)),
        "gather": (lambda x, i: x[i] + x.at[i].add(1.0).sum(), (vector, np.zeros(3, np.int32))),
        "empty": (lambda x, y: (x * 2, y.sum()), (np.ones((0, 3), f64), vector)),
        "scalars": (lambda x, y: (x * y, x + y), (f64(1), f64(2))),
        "sort": (jnp.sort, (vector,)),
        "random": (
            lambda k: jax.random.normal(jax.random.wrap_key_data(k), (5,)),
            (np.zeros(2, np.uint32),),
        ),
    }


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _sizes(number: int, sizes: Iterable[int]) -> bytes:
    return _field(number, b"".join(map(_varint, sizes)))


def write_inputs(folder: Path, plugin: Path, label: str) -> None:
    """Compile every program with this plugin, write the files and print their number."""
    import jax

    from cyxla import _runtime

    jax.config.update("jax_enable_x64", True)
    cyxla.initialize(plugin)
    programs = _programs()
    for name, (function, arguments) in programs.items():
        program = cyxla.lower(function, arguments)
        executable, _ = cyxla.compile_program(program, route="pjrt")
        content = _sizes(1, executable.input_bytes) + _sizes(2, executable.output_bytes)
        content += _field(3, _runtime.serialize(executable))
        (folder / f"{label}-{name}").write_bytes(content)
    print(f"{label}: {len(programs)} programs")


def main() -> None:
    """Write the inputs into the given folder, with one child process per plugin."""
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        write_inputs(folder, Path(sys.argv[2]), sys.argv[3])
        return
    folder.mkdir(parents=True, exist_ok=True)
    plugins = [plugin for plugin in cyxla.available_plugins() if plugin.platform == "cpu"]
    if not plugins:
        sys.exit("error: no CPU plugin is installed: pip install 'cyxla[cpu]'")
    for plugin in plugins:
        subprocess.run(
            [sys.executable, __file__, folder, plugin.path, plugin.source.replace(" ", "-")],
            check=True,
            timeout=_TIME_LIMIT_SECONDS,
        )


if __name__ == "__main__":
    main()
