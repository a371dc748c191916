# SPDX-License-Identifier: Apache-2.0
"""Writes down which products and sums of a kernel the code generator fuses.

XLA marks sums with `contract`, and LLVM's instruction selection fuses some of them with a product:
which, depends on the uses of every value in a block. Inlined into other code, a kernel would get
other fusions and so other numbers. So the code generator is asked: every instruction gets a line
number, and the assembly tells what became of it. Then the fused sums are written as `llvm.fma`, and
what allows the optimizer to change numbers is dropped.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from cyxla.library.assembly import (
    BEGIN_FUNCTION,
    host_machine,
    numbered,
    operations,
    operations_by_line,
    parsed,
)
from cyxla.library.ir import split_operands

_FLAG_WORDS: Final = "fast|nnan|ninf|nsz|arcp|contract|afn|reassoc"
_ARITHMETIC: Final = re.compile(
    rf"^  (?P<name>%\S+) = (?P<opcode>fadd|fsub|fmul|fneg) (?P<flags>(?:(?:{_FLAG_WORDS}) )*)"
    r"(?P<type>(?:<[^>]+>|double|float|half|bfloat)) (?P<operands>.*?)(?:, ![\w.]+ !\d+)*$"
)
_FLAGS: Final = re.compile(rf"\b(?:(?:{_FLAG_WORDS}) )+")
_METADATA: Final = re.compile(r", !(?:invariant\.load|alias\.scope|noalias) !\d+")
_MULADD: Final = "@llvm.fmuladd."
_ELEMENTS: Final = {"double": "f64", "float": "f32", "half": "f16", "bfloat": "bf16"}


class Kernel(NamedTuple):
    """A kernel that rounds the same way wherever it is compiled.

    Attributes:
        text: its module.
        num_fused: how many sums are fused with a product.
        is_equal: whether the kernel, compiled alone, has as many fused operations, sums, products
            and quotients before as after. If not, its numbers may differ.
    """

    text: str
    num_fused: int
    is_equal: bool


class _Value(NamedTuple):
    """An arithmetic instruction of a function."""

    line: int
    block: int
    opcode: str
    may_fuse: bool
    may_reorder: bool
    type: str
    operands: tuple[str, ...]


def exact_kernel(text: str) -> Kernel:
    """Return a kernel with its fused sums written down.

    Args:
        text: the kernel's module, readable by this LLVM.

    Raises LibraryError when LLVM cannot read the module.
    """
    machine = host_machine()
    original = _canonical(text)
    lines = original.split("\n")
    found = operations_by_line(numbered(lines), machine)
    exact, num_fused = _rewritten(lines, found)
    exact = _without_flags(exact)
    # Loads that are known to be invariant are merged, and so are the operations on them.
    is_equal = operations(original, machine) == operations(exact, machine)
    return Kernel(_without_metadata(exact), num_fused, is_equal)


def _canonical(text: str) -> str:
    """Return the module as this LLVM prints it, an instruction a line."""
    return str(parsed(text))


def with_contract(text: str) -> str:
    """Return the module of a plugin that lets LLVM fuse any sum, with the flag that says so."""
    return re.sub(
        r"^(  %\S+ = f(?:add|sub|mul) )(?!.*\bcontract\b)", r"\1contract ", text, flags=re.M
    )


def _rewritten(lines: Sequence[str], found: Mapping[int, Counter[str]]) -> tuple[str, int]:
    """Write the fused sums of every function as `llvm.fma`; return the text and their number."""
    result = list(lines)
    declared: set[str] = set()
    num_fused = 0
    start = 0
    for number, line in enumerate(lines):
        if BEGIN_FUNCTION.match(line):
            start = number
        elif line.startswith("}"):
            function = _Function(lines, start, number, found)
            for value, product in function.fused():
                result[value.line - 1] = _fused(lines[value.line - 1], value, product, function)
                declared.add(_declaration("fma", value.type))
                num_fused += 1
            for value, operand in function.nested():
                result[value.line - 1] = _nested(lines[value.line - 1], value, operand, function)
                num_fused += 1
    for number, line in enumerate(result):
        if line.startswith("declare ") and _MULADD in line:
            result[number] = ""
        elif _MULADD in line:
            result[number] = line.replace(_MULADD, "@llvm.fma.")
            match = re.search(r"(\S+|<[^>]+>) @llvm\.fma\.", result[number])
            assert match is not None
            declared.add(_declaration("fma", match[1]))
    known = {line.split("(")[0] for line in result if line.startswith("declare ")}
    missing = [each for each in sorted(declared) if each.split("(")[0] not in known]
    return "\n".join([*result, *missing, ""]), num_fused


def _declaration(name: str, type_: str) -> str:
    return f"declare {type_} @llvm.{name}.{_mangled(type_)}({type_}, {type_}, {type_})"


def _mangled(type_: str) -> str:
    if type_.startswith("<"):
        count, _, element = type_[1:-1].partition(" x ")
        return f"v{count}{_ELEMENTS[element]}"
    return _ELEMENTS[type_]


def _fused(line: str, value: _Value, product: int, function: _Function) -> str:
    """Return the lines of a sum that is fused with the product at one of its operands."""
    name = line.split(" = ")[0].strip()
    x, y = function.values[value.operands[product]].operands
    other = value.operands[1 - product]
    lines = []
    if value.opcode == "fsub":
        negated = _derived(name, "negated")
        lines.append(f"  {negated} = fneg {value.type} {other if product == 0 else x}")
        if product == 0:
            other = negated
        else:
            x = negated
    return "\n".join([*lines, _call(name, value.type, x, y, other)])


def _nested(line: str, value: _Value, operand: int, function: _Function) -> str:
    """Return the lines of a sum that went into a fused one: a * b + (c * d + e)."""
    name = line.split(" = ")[0].strip()
    a, b, c, d = function.factors(value.operands[operand])
    inner = _derived(name, "inner")
    other = value.operands[1 - operand]
    return "\n".join([_call(inner, value.type, c, d, other), _call(name, value.type, a, b, inner)])


def _call(name: str, type_: str, x: str, y: str, z: str) -> str:
    operands = ", ".join(f"{type_} {operand}" for operand in (x, y, z))
    return f"  {name} = call {type_} @llvm.fma.{_mangled(type_)}({operands})"


def _derived(name: str, word: str) -> str:
    return f'%"{name[1:].strip(chr(34))}.{word}"'


def _is_doubling(product: _Value) -> bool:
    return any(re.search(r"(?<![\w.])-?2\.0+e\+00", operand) for operand in product.operands)


class _Function:
    """The arithmetic of a function, and what the code generator made of it."""

    def __init__(
        self, lines: Sequence[str], start: int, end: int, found: Mapping[int, Counter[str]]
    ) -> None:
        self.values: dict[str, _Value] = {}
        self._found = found
        self._uses: Counter[str] = Counter()
        block = 0
        for number in range(start + 1, end):
            line = lines[number]
            if line and not line.startswith(" "):
                block = number
            self._uses.update(
                re.findall(r'%(?:"[^"]*"|[\w.$-]+)', line.partition(" = ")[2] or line)
            )
            if match := _ARITHMETIC.match(line):
                self.values[match["name"]] = _Value(
                    number + 1,
                    block,
                    match["opcode"],
                    "contract" in match["flags"] or "fast" in match["flags"],
                    "reassoc" in match["flags"] or "fast" in match["flags"],
                    match["type"],
                    tuple(split_operands(match["operands"])),
                )

        self._twins: defaultdict[tuple[str, ...], list[_Value]] = defaultdict(list)
        for value in self.values.values():
            self._twins[self._meaning(value)].append(value)

    def fused(self) -> Iterator[tuple[_Value, int]]:
        """Yield each sum that is fused, and which operand is the product."""
        for value in self.values.values():
            if value.opcode in {"fadd", "fsub"} and value.may_fuse:
                products = [i for i in (0, 1) if self._is_product(value, i)]
                if products and self._is_fused(value, products):
                    yield value, self._chosen(value, products)

    def nested(self) -> Iterator[tuple[_Value, int]]:
        """Yield each sum that went into a fused sum of two products, and which operand that is.

        Where sums may be reordered, the second product is fused with this sum's other operand. Then
        neither it nor the first has an instruction of its own.
        """
        for value in self.values.values():
            kinds = self._found.get(value.line, Counter())
            if value.opcode != "fadd" or not value.may_reorder or not kinds["fma"]:
                continue
            if any(self._is_product(value, i) for i in (0, 1)):
                continue
            candidates = [i for i in (0, 1) if self._takes_in(value.operands[i])]
            if candidates:
                yield value, candidates[-1]

    def factors(self, name: str) -> tuple[str, ...]:
        """Return the factors of the product that a sum is fused with, then of its other operand."""
        value = self.values[name]
        chosen = self._chosen(value, (0, 1))
        first, second = (self._product(value, i) for i in (chosen, 1 - chosen))
        return (*first.operands, *second.operands)

    def _takes_in(self, name: str) -> bool:
        value = self.values.get(name)
        if value is None or value.opcode != "fadd" or self._uses[name] != 1:
            return False
        return all(
            self._is_product(value, i) and not self._found.get(self._product(value, i).line)
            for i in (0, 1)
        )

    def _is_product(self, value: _Value, operand: int) -> bool:
        product = self.values.get(value.operands[operand])
        return product is not None and product.opcode == "fmul" and product.may_fuse

    def _product(self, value: _Value, operand: int) -> _Value:
        return self.values[value.operands[operand]]

    def _is_fused(self, value: _Value, products: Sequence[int]) -> bool:
        kinds = self._found.get(value.line)
        if kinds:
            return kinds["fma"] > 0
        # The sum has no instruction of its own. An equal sum has it, or the instruction that
        # negates it; otherwise it was moved into another block's code and lost its line.
        for other in self._twins[self._meaning(value)]:
            if twin := self._found.get(other.line):
                return twin["fma"] > 0
        return any(
            self._uses[value.operands[i]] == 1
            and self.values[value.operands[i]].block == value.block
            for i in products
        )

    def _meaning(self, value: _Value) -> tuple[str, ...]:
        """Return what is equal for sums that are computed once: the products' operands count."""
        products = (self.values.get(operand) for operand in value.operands)
        operands = [
            f"fmul {sorted(product.operands)}" if product and product.opcode == "fmul" else operand
            for operand, product in zip(value.operands, products, strict=True)
        ]
        # The order matters to a difference only.
        return (value.opcode, *(sorted(operands) if value.opcode == "fadd" else operands))

    def _chosen(self, value: _Value, products: Sequence[int]) -> int:
        """Return the product that was fused: the one that has no instruction of its own left."""
        gone = [i for i in products if not self._found.get(self._product(value, i).line)]
        candidates = gone or list(products)
        kinds = self._found.get(value.line, Counter())
        if kinds["add"] + kinds["sub"] > 0:
            # Twice a number became a sum, with the line of what uses it.
            candidates = [
                i for i in candidates if not _is_doubling(self._product(value, i))
            ] or candidates
        return min(candidates, key=lambda i: (self._uses[value.operands[i]], i))


def _without_flags(text: str) -> str:
    """Drop what lets the optimizer change numbers.

    The order of a reduction's sums is not given anywhere else, so those keep theirs.
    """
    return "\n".join(
        line
        if "@llvm.vector.reduce." in line or not line.startswith("  ")
        else _FLAGS.sub("", line)
        for line in text.split("\n")
    )


def _without_metadata(text: str) -> str:
    """Drop what is not true of the code that a kernel is inlined into."""
    lines = (line for line in text.split("\n") if "noalias.scope.decl" not in line)
    return "\n".join(_METADATA.sub("", line) for line in lines)
