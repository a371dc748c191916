# SPDX-License-Identifier: Apache-2.0
"""Compares StableHLO versions, and writes artifacts for older ones.

Only the functions that write artifacts import JAX.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cyxla.errors import UnsupportedError

if TYPE_CHECKING:
    from jax.extend.mlir import ir

    from cyxla.program.program import Program

__all__ = ["for_version", "is_newer", "is_version", "own_context", "serialize"]

_VERSION: Final = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}", re.ASCII)


def is_version(text: object) -> bool:
    """Return whether the text is a StableHLO version such as "1.13.3"."""
    return isinstance(text, str) and _VERSION.fullmatch(text) is not None


def is_newer(version: str, other: str) -> bool:
    """Return whether a StableHLO version is newer than the other."""
    return _numbers(version) > _numbers(other)


def for_version(program: Program, version: str) -> bytes:
    """Return the program's artifact for readers of an older StableHLO version.

    Raises:
        UnsupportedError: an operation of the program does not exist in that version.
    """
    from jax.extend.mlir.dialects import stablehlo

    with own_context(program, f"written as StableHLO {version}") as context:
        module = stablehlo.deserialize_portable_artifact(context, program.stablehlo)
        return serialize(module, version)


@contextlib.contextmanager
def own_context(program: Program, what: str) -> Iterator[ir.Context]:
    """Enter a new MLIR context; exceptions in it become UnsupportedError with MLIR's messages."""
    from jax.interpreters import mlir

    context = mlir.make_ir_context()
    messages: list[str] = []

    def keep(diagnostic: Any) -> bool:
        messages.append(diagnostic.message)
        return True  # otherwise MLIR prints it to stderr

    handler: Any = context.attach_diagnostic_handler(keep)
    try:
        with context:
            yield context
    except Exception as error:  # the bindings raise several types
        raise UnsupportedError(
            f"program {program.name!r} of StableHLO {program.stablehlo_version} cannot be {what}:"
            f" {'; '.join(messages) or error}"
        ) from error
    finally:
        handler.detach()


def serialize(module: ir.Module, version: str) -> bytes:
    """Return the module as a portable artifact for readers of a StableHLO version."""
    from jax.extend.mlir.dialects import stablehlo

    # Without allow_other_dialects, operations that JAX keeps in CHLO (erf, top_k) fail.
    artifact = stablehlo.serialize_portable_artifact(module, version, allow_other_dialects=True)
    return bytes(artifact)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
