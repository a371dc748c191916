# SPDX-License-Identifier: Apache-2.0
"""Compiles programs with small matrix products a second time, with the products as kernels.

By default XLA calls libraries for matrix products. These are made for large matrices; for small
ones the library call takes longer than the product, and only the plugin can make it. With other
options the products become kernels. If the program can then be called directly, it is kept.

The two forms round differently. The choice must be the same in every process, so it depends on the
program and the plugin's code for it, never on measured times.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cyxla.compilation.settings import CompileRequest
from cyxla.compilation.statistics import CompiledPair, CompileStatistics
from cyxla.errors import Error
from cyxla.memory import aligned_empty
from cyxla.program.program import Program

if TYPE_CHECKING:
    from cyxla._runtime import Executable

__all__ = ["REASON", "chosen_form", "is_close"]

REASON: Final = "compiled a second time, with its small matrix products as kernels"
"""`Executable.route_reason` of a program for which the second form was kept."""

# Limit for all arrays of a program together; above it, the libraries are faster.
_MAX_BYTES: Final = 256 * 1024
# In the unit of src/direct/read/work.h; about 50 us. A direct call saves about 5 us.
_MAX_WORK: Final = 125_000
# XLA turns products up to these sizes into kernels (DotImplementationStrategy).
_SMALL_SIDE, _LARGE_SIDE, _MAX_CONTRACTED = 32, 128, 128
_ELEMENT_TYPES: Final = (11, 12)  # F32, F64
# CPU time in ms that a product adds to a compilation, by its number of rows, which LLVM unrolls.
_COMPILE_COST: Final = ((3, 0), (8, 40), (_LARGE_SIDE, 120))
# The products may add this many ms: a constant for small programs, and half of the first
# compilation's time for each instruction.
_ALLOWANCE: Final = 250
_COST_PER_INSTRUCTION: Final = 0.75
# Relative to the largest value of an output; the forms add in different orders.
_TOLERANCE: Final = {"f": 1e-5, "d": 1e-10, "F": 1e-5, "D": 1e-10, "e": 1e-2}
_DOT: Final = re.compile(
    r"stablehlo\.dot_general.*?(?:batching_dims = \[([\d, ]*)\][^,]*, )?"
    r"contracting_dims = \[([\d, ]*)\] x \[([\d, ]*)\].*?: \(tensor<([^>]*)>"
)


class Product(NamedTuple):
    """A batch of `batch` products of an m x k and a k x n matrix."""

    element_type: int
    batch: float
    m: float
    k: float
    n: float
    is_lhs_transposed: bool
    is_rhs_transposed: bool


def chosen_form(
    request: CompileRequest,
    compiled: CompiledPair,
    compile_form: Callable[[CompileRequest], CompiledPair],
) -> CompiledPair:
    """Return the program as compiled, or compiled again if it can then be called directly.

    Both forms must agree within rounding. `seconds` of the statistics covers both compilations.
    """
    second = request.settings.for_small_matrices()
    if second is None or not _is_candidate(request, compiled.executable):
        return compiled
    route = second.route._replace(route="auto", reason=REASON)
    start = time.perf_counter()
    try:
        again = compile_form(request._replace(settings=second._replace(route=route)))
    except Error:  # keep the first form
        seconds = time.perf_counter() - start
        return CompiledPair(
            compiled.executable, _with_second(compiled.statistics, seconds, from_cache=False)
        )
    executable, statistics = compiled
    if again.executable.route == "direct" and _agree(request.program, executable, again.executable):
        executable = again.executable
        statistics = again.statistics._replace(seconds=statistics.seconds)
    from_cache = compiled.statistics.from_cache and again.statistics.from_cache
    return CompiledPair(
        executable, _with_second(statistics, again.statistics.seconds, from_cache=from_cache)
    )


def _with_second(
    statistics: CompileStatistics, seconds: float, *, from_cache: bool
) -> CompileStatistics:
    return statistics._replace(
        seconds=statistics.seconds + seconds, second_form_seconds=seconds, from_cache=from_cache
    )


def _is_candidate(request: CompileRequest, executable: Executable) -> bool:
    from cyxla import _runtime

    program, settings = request.program, request.settings
    if settings.exact or settings.route.route == "pjrt" or executable.route != "pjrt":
        return False
    arrays = (*program.inputs, *program.outputs)
    if program.needs_python or sum(array.size_bytes for array in arrays) > _MAX_BYTES:
        return False
    facts = _runtime.program_facts(executable)
    return facts is not None and _pays(facts, program.text)


def _pays(facts: dict[str, Any], text: str) -> bool:
    """Return whether a second form is likely to be faster, at an acceptable compile time."""
    products = [Product(*fields) for fields in facts["products"]]
    # Products with a vector are kernels in both forms.
    matrices = [product for product in products if min(product.m, product.n) > 1]
    if facts["obstacles"] or float(facts["work"]) > _MAX_WORK:
        return False
    if not all(_becomes_kernel(product) for product in matrices):
        return False
    transposed = [each.is_lhs_transposed or each.is_rhs_transposed for each in matrices]
    if any(transposed) and not _are_plain_products(text):
        return False
    allowance = _ALLOWANCE + _COST_PER_INSTRUCTION * facts["instructions"]
    return sum(_compile_cost(product) for product in matrices) <= float(allowance)


def _becomes_kernel(product: Product) -> bool:
    sides = (product.m, product.n)
    return (
        product.element_type in _ELEMENT_TYPES
        and not (product.is_lhs_transposed and product.is_rhs_transposed)
        and product.k <= _MAX_CONTRACTED
        and min(sides) <= _SMALL_SIDE
        and max(sides) <= _LARGE_SIDE
    )


def _are_plain_products(text: str) -> bool:
    """Return whether each product contracts the last dimension with the first of the other operand.

    XLA folds explicit transpositions into library calls, but copies for kernels. A transposition
    in the product itself is the same in both forms.
    """
    found = _DOT.findall(text)
    return len(found) == text.count("stablehlo.dot_general") and all(
        contracted_lhs == str(lhs.count("x") - 1)
        and contracted_rhs == str(len(batch.split(",")) if batch else 0)
        for batch, contracted_lhs, contracted_rhs, lhs in found
    )


def _compile_cost(product: Product) -> float:
    return next(cost for rows, cost in _COMPILE_COST if product.m <= rows)


def _arrays(program: Program, seed: int) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    arrays = []
    for declared in program.inputs:
        array = aligned_empty(declared.shape, declared.dtype)
        if declared.dtype.kind in "iub":
            array[...] = generator.integers(0, 2, declared.shape)
        else:
            array[...] = generator.normal(size=declared.shape).astype(np.float64)
        arrays.append(array)
    return arrays


def _agree(program: Program, first: Executable, second: Executable) -> bool:
    for seed in range(3):
        arrays = _arrays(program, seed)
        with np.errstate(all="ignore"):
            for left, right in zip(first.run(arrays), second.run(arrays), strict=True):
                if not is_close(left, right):
                    return False
    return True


def is_close(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    """Tell whether results of two forms agree within rounding; integers have to be equal."""
    tolerance = _TOLERANCE.get(left.dtype.char)
    if tolerance is None:
        return left.tobytes() == right.tobytes()
    finite = np.abs(left[np.isfinite(left)])
    scale = float(finite.max(initial=0))
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
