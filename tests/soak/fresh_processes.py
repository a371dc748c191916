# SPDX-License-Identifier: Apache-2.0
"""Check that fresh processes under load give the same results for small matrix products.

    python tests/soak/fresh_processes.py 30

The program alone must decide which of its two forms is used, and so the bits of its results. Ends
with "soak: FAILED" and status 1 when two processes differ. `--planted random` chooses at random in
the children; the check must detect that.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import cyxla
from cyxla.compilation import small_matrices

_SECONDS = 300


def _programs() -> dict[str, cyxla.Program]:
    """Return twenty programs on both sides of each limit of the rule."""
    import jax
    import jax.numpy as jnp

    def lower(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "f8") -> Any:
        declared = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        return cyxla.lower(function, declared, platform="cpu", x64=True)

    def product(a: Any, b: Any) -> Any:
        return jnp.tanh(a @ b)

    def products(count: int) -> Callable[..., Any]:
        return lambda a, b: tuple((a * (i + 1.5)) @ b for i in range(count))

    def beside(a: Any, b: Any, x: Any) -> Any:
        return a.T @ b, jnp.tanh(jnp.sin(jnp.exp(x)))

    def loop(a: Any, b: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ b), a)

    def gradient(w: Any, x: Any) -> Any:
        return jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)

    square = {n: ((n, n), (n, n)) for n in (4, 8, 9, 20, 32, 33)}
    found = {
        **{f"product{n}": lower(product, *shapes) for n, shapes in square.items()},
        "single precision": lower(product, (20, 20), (20, 20), dtype="f4"),
        "complex": lower(product, (8, 8), (8, 8), dtype="c8"),
        "one long side": lower(product, (8, 16), (16, 128)),
        "two long sides": lower(product, (40, 16), (16, 128)),
        "contracted 128": lower(product, (4, 128), (128, 4)),
        "contracted 129": lower(product, (4, 129), (129, 4)),
        "few": lower(products(6), (8, 8), (8, 8)),
        "many": lower(products(12), (8, 8), (8, 8)),
        **{f"beside {n}": lower(beside, (32, 32), (32, 32), (n,)) for n in (1000, 2600, 10_000)},
        "normal equations": lower(lambda j, r: (j.T @ j, j.T @ r), (20, 6), (20,)),
        "gradient": lower(gradient, (8, 8), (8, 8)),
        "loop": lower(loop, (8, 8), (8, 8)),
    }
    assert len(found) == 20
    return found


def _answer(folder: Path) -> str:
    """Return a line for each program: its form and a digest of its outputs."""
    lines = []
    for path in sorted(folder.glob("*.cyxla")):
        executable, statistics = cyxla.compile_program(cyxla.Program.load(path), cache=False)
        generator = np.random.default_rng(1)
        arrays = [
            generator.normal(size=each.shape).astype(each.dtype) for each in executable.input_types
        ]
        results = b"".join(result.tobytes() for result in executable.run(arrays))
        lines.append(
            f"{path.stem}: {executable.route}, {executable.route_reason or 'no reason'},"
            f" second form {statistics.second_form_seconds is not None},"
            f" {statistics.instructions} instructions, {hashlib.sha256(results).hexdigest()}"
        )
    return "\n".join(lines)


def _plant(fault: str | None) -> None:
    if fault == "random":
        small_matrices._pays = lambda facts, text: os.urandom(1)[0] < 128  # type: ignore[assignment]


def _run_child(folder: Path, fault: str | None) -> str:
    command = [sys.executable, __file__, "--child", str(folder)]
    if fault is not None:
        command += ["--planted", fault]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    return ended.stdout


def main() -> int:
    """Compare the given number of processes, two at a time, beside a busy one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("processes", type=int, nargs="?", default=6)
    parser.add_argument("--planted", choices=["random"])
    parser.add_argument("--child", type=Path, help="compile the programs of this folder")
    arguments = parser.parse_args()
    if arguments.child is not None:
        _plant(arguments.planted)
        print(_answer(arguments.child))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, program in _programs().items():
            program.save(folder / f"{title}.cyxla")
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            with ThreadPoolExecutor(2) as executor:
                children = [
                    executor.submit(_run_child, folder, arguments.planted)
                    for _ in range(arguments.processes)
                ]
                answers = [child.result() for child in children]
        finally:
            busy.kill()
            busy.wait()
    print(answers[0], end="")
    if len(set(answers)) > 1:
        first, other = (answer.splitlines() for answer in sorted(set(answers))[:2])
        for left, right in zip(first, other, strict=True):
            if left != right:
                print(f"{left}\n  in another process\n{right}")
        print(f"soak: FAILED: {len(set(answers))} answers of {len(answers)} fresh processes")
        return 1
    print(f"soak: one answer of {len(answers)} fresh processes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
