# SPDX-License-Identifier: Apache-2.0
"""Reads the LLVM IR that XLA dumps for each kernel, and rewrites it for the LLVM of llvmlite.

XLA's LLVM is newer. What it prints in a newer way is listed in `DOWNGRADES`; what is not listed
there is a parse error.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import ml_dtypes
import numpy as np

from cyxla.errors import LibraryError

_DUMPED: Final = "*.ir-with-opt.ll"
_DEFINITION: Final = re.compile(r'^define [^@\n]*@("[^"]+"|[\w.$-]+)\(', re.M)

_TYPE: Final = re.compile(r"\b(double|float|half|bfloat)\b")
_NUMPY_TYPES: Final = {
    "double": np.float64,
    "float": np.float32,
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
}
_INFINITY, _QUIET_NAN = "inf", "qnan"


def kernel_texts(folder: Path, symbols: Sequence[str]) -> dict[str, str]:
    """Return for each kernel the module that defines it, as XLA dumped it into a folder.

    Raises LibraryError when a kernel is missing or defined twice: then the dump is not that of one
    compilation.
    """
    texts: dict[str, str] = {}
    wanted = set(symbols)
    for path in sorted(folder.glob(_DUMPED)):
        text = path.read_text()
        for match in _DEFINITION.finditer(text):
            symbol = match[1].strip('"')
            if symbol in wanted and text is not texts.setdefault(symbol, text):
                raise LibraryError(f"the plugin dumped the kernel {symbol!r} twice")
    if missing := sorted(wanted - texts.keys()):
        raise LibraryError(
            f"the plugin did not dump the kernel {missing[0]!r} as LLVM IR, so the program cannot"
            " be built into a library"
        )
    return texts


class Downgrade(NamedTuple):
    """A piece of syntax: what it is, how to find it, and what an older LLVM reads instead.

    The replacement is a text as `re.sub` takes it, or a function of the match and the type of the
    constant, the last one named before it in its line.
    """

    name: str
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str], str], str]


def _hexadecimal(match: re.Match[str], type_: str) -> str:
    """Write `f0x...`, the bits of the constant's own type, as older LLVMs do."""
    return _constant(type_, bytes.fromhex(match[1]))


def _named(match: re.Match[str], type_: str) -> str:
    """Write an infinity or a NaN."""
    value = np.inf if match["name"] == _INFINITY else np.nan
    number = np.copysign(np.array(value, _NUMPY_TYPES[type_]), -1.0 if match[1] == "-" else 1.0)
    return _constant(type_, number.astype(_NUMPY_TYPES[type_]).tobytes()[::-1])


def _payload(match: re.Match[str], type_: str) -> str:
    """Write a NaN with a payload; the number has the bits after the exponent."""
    dtype = np.dtype(_NUMPY_TYPES[type_])
    infinity = int.from_bytes(np.array(np.inf, dtype).tobytes(), "little")
    sign = 1 << (8 * dtype.itemsize - 1) if match[1] == "-" else 0
    bits = infinity | int(match[2], 16) | sign
    return _constant(type_, bits.to_bytes(dtype.itemsize, "big"))


def _decimal(match: re.Match[str], type_: str) -> str:
    """Write a decimal number that its type does not have exactly; doubles are read as they are."""
    if type_ == "double":
        return match[0]
    return _constant(type_, np.array(float(match[0]), _NUMPY_TYPES[type_]).tobytes()[::-1])


def _constant(type_: str, bits: bytes) -> str:
    """Return a constant from its bits, the highest byte first."""
    if type_ == "half":
        return f"0xH{bits.hex().upper()}"
    if type_ == "bfloat":
        return f"0xR{bits.hex().upper()}"
    if type_ == "float":  # as the double with this value, so that signalling NaN stays one
        (value,) = struct.unpack(">I", bits)
        return f"0x{_widened(value):016X}"
    return f"0x{bits.hex().upper()}"


def _widened(bits: int) -> int:
    """Return the bits of a float as those of a double."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return sign << 63 | 0x7FF << 52 | fraction << 29
    value = struct.unpack(">f", bits.to_bytes(4, "big"))[0]
    return int.from_bytes(struct.pack(">d", value), "big")


# PJRT 0.115 prints all of them, 0.106 and 0.81 the last four.
DOWNGRADES: Final = (
    Downgrade("hexadecimal constants", re.compile(r"\bf0x([0-9A-F]+)\b"), _hexadecimal),
    Downgrade(
        "infinities and NaN", re.compile(r"(?<![\w.])([+-]?)(?P<name>inf|qnan)\b(?!\()"), _named
    ),
    Downgrade("NaN with a payload", re.compile(r"(?<![\w.])([+-]?)s?nan\(0x(\w+)\)"), _payload),
    Downgrade(
        "decimal constants", re.compile(r"(?<![\w.%@!-])-?\d+\.\d+(?:e[+-]\d+)?\b"), _decimal
    ),
    Downgrade("attribute groups", re.compile(r"^attributes #\d+ = .*$"), ""),
    Downgrade("references to them", re.compile(r" #\d+\b"), ""),
    Downgrade("memory effects", re.compile(r" (?:memory|denormal_fpenv)\([^)]*\)"), ""),
    Downgrade(
        "module flags",
        re.compile(r"^!(?:llvm\.module\.flags|xla_cpu_memory_region_name) = .*$"),
        "",
    ),
)


def readable(text: str) -> str:
    """Return a kernel's module as llvmlite's LLVM reads it.

    Attributes are dropped. The only one that changes numbers is a function's set of processor
    features without fused multiply-add, with which XLA's own library of functions comes: there
    `llvm.fmuladd` is a product and a sum, and is written so.
    """
    return "\n".join(_lines(text)) + "\n"


def _lines(text: str) -> Iterator[str]:
    unfused = _groups_without_fma(text)
    is_unfused = False
    for line in text.splitlines():
        if line.startswith("define "):
            is_unfused = any(f" {group} " in line for group in unfused)
        elif line.startswith("}"):
            is_unfused = False
        for each in _split_fmuladd(line) if is_unfused else (line,):
            if not each.startswith(";"):
                yield _downgraded(each)


def _groups_without_fma(text: str) -> set[str]:
    groups = re.findall(r'^attributes (#\d+) = .*"target-features"="([^"]*)"', text, re.M)
    return {group for group, features in groups if "+fma" not in features.split(",")}


_FMULADD: Final = re.compile(
    r"^  (?P<name>%\S+) = .*call .*?(?P<type><[^>]+>|\w+) @llvm\.fmuladd\.\w+\((?P<operands>.*)\)"
)


def _split_fmuladd(line: str) -> Iterator[str]:
    match = _FMULADD.match(line)
    if match is None:
        yield line
        return
    type_ = match["type"]
    x, y, z = (operand.removeprefix(type_).strip() for operand in split_operands(match["operands"]))
    product = f"{match['name']}.product"
    yield f"  {_quoted(product)} = fmul {type_} {x}, {y}"
    yield f"  {match['name']} = fadd {type_} {_quoted(product)}, {z}"


def _quoted(name: str) -> str:
    return f'%"{name[1:]}"'


def split_operands(text: str) -> list[str]:
    """Split operands at the commas that are in no vector and no other brackets."""
    operands, depth, start = [], 0, 0
    for i, character in enumerate(text):
        if character in "<([{":
            depth += 1
        elif character in ">)]}":
            depth -= 1
        elif character == "," and depth == 0:
            operands.append(text[start:i].strip())
            start = i + 1
    return [*operands, text[start:].strip()]


def _downgraded(line: str) -> str:
    for each in DOWNGRADES:
        if isinstance(each.replacement, str):
            line = each.pattern.sub(each.replacement, line)
        elif each.pattern.search(line):
            line = _retyped(line, each.pattern, each.replacement)
    return line


def _retyped(
    line: str, pattern: re.Pattern[str], replacement: Callable[[re.Match[str], str], str]
) -> str:
    def replaced(match: re.Match[str]) -> str:
        types = _TYPE.findall(line, 0, match.start())
        return replacement(match, types[-1]) if types else match[0]

    return pattern.sub(replaced, line)
