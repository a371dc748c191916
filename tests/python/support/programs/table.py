# SPDX-License-Identifier: Apache-2.0
"""The table of the programs that tests compile, by name; each test selects by tag."""

from __future__ import annotations

from support.programs.callbacks import CALLBACKS
from support.programs.direct import DIRECT
from support.programs.entry import Kind, Program, in_dtype
from support.programs.kinds import KINDS
from support.programs.numerics import LINEAR_ALGEBRA, REAL
from support.programs.others import OTHERS

_REAL_DTYPES = ("float32", "float64")
_LAPACK_DTYPES = ("float32", "complex128", "float64", "complex64")
# The kinds that depend on versions: custom calls, CHLO, libraries, control flow.
_OFTEN = (
    "inverse trigonometric", "hyperbolic", "special", "incomplete gamma", "logsumexp", "matmul",
    "convolution", "switch", "while", "scan", "cho_solve", "solve a batch", "lu", "expm", "lstsq",
    "pinv", "eig", "schur", "fft", "inverse fft", "sort", "top_k", "median", "gather", "scatter",
    "gradient through a solve", "large constant",
)  # fmt: skip


def _in_dtypes(
    kinds: dict[str, Kind], dtypes: tuple[str, ...], *tags: str, brief: tuple[str, ...] = ()
) -> dict[str, Program]:
    """Every kind in every dtype; those of `brief`, or all, get that tag in one of them."""
    programs = {
        f"{name}, {dtype}": in_dtype(kind, dtype, "matrix", *tags)
        for name, kind in kinds.items()
        for dtype in dtypes
    }
    for index, name in enumerate(brief or kinds):
        _tag(programs, f"{name}, {dtypes[index % len(dtypes)]}", "brief")
    return programs


def _tag(programs: dict[str, Program], name: str, *tags: str) -> None:
    programs[name] = programs[name].tagged(*tags)


def _kinds() -> dict[str, Program]:
    programs = _in_dtypes(KINDS, _REAL_DTYPES, "jit", brief=_OFTEN)
    for name in KINDS:
        _tag(programs, f"{name}, float64", "direct")
    _tag(programs, "incomplete gamma, float64", "converges")
    return programs


_PARTS = (
    _kinds(),
    _in_dtypes(LINEAR_ALGEBRA, _LAPACK_DTYPES),
    _in_dtypes(REAL, _REAL_DTYPES),
    OTHERS,
    CALLBACKS,
    DIRECT,
)
PROGRAMS: dict[str, Program] = {name: part[name] for part in _PARTS for name in part}
assert len(PROGRAMS) == sum(len(part) for part in _PARTS), "two programs have one name"


def select(tag: str) -> dict[str, Program]:
    """The programs with a tag."""
    return {name: program for name, program in PROGRAMS.items() if tag in program.tags}
