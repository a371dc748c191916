# SPDX-License-Identifier: Apache-2.0
"""Asks LLVM's code generator which arithmetic instructions it makes of each line of IR."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import llvmlite.binding as llvm

from cyxla.errors import LibraryError

_TRIPLE: Final = "x86_64-unknown-linux-gnu"
_INSTRUCTION: Final = re.compile(r"^  (?! )\S")
BEGIN_FUNCTION: Final = re.compile(r"^define .*\{$")

# How x86 instructions are called, the longest first: vfmadd213sd, vsubpd, vmulss, vdivpd.
_KINDS: Final = re.compile(r"^v?(?:(?P<fma>fn?m(?:add|sub)(?:addsub)?)|(?P<other>add|sub|mul|div))")
_VECTOR_END: Final = re.compile(r"(?:s|p)[sdh]$")


def host_machine() -> Any:
    """Return the machine that the plugin generates code for: this one."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.set_option("", "--use-unknown-locations=Enable")
    return llvm.Target.from_triple(_TRIPLE).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="default",
    )


def parsed(text: str, what: str = "a kernel") -> Any:
    """Return LLVM's module of a text. Raises LibraryError when LLVM cannot read it."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        version = ".".join(map(str, llvm.llvm_version_info))
        raise LibraryError(
            f"LLVM {version} cannot read {what} as the plugin wrote it: {str(error).strip()}; use"
            " another plugin, or another version of llvmlite"
        ) from None
    return module


def numbered(lines: Sequence[str]) -> str:
    """Return the module with the number of each line as its debug location."""
    result, metadata = [], []
    scope = 0
    first = 1 + max((int(n) for line in lines for n in re.findall(r"!(\d+)", line)), default=0)
    base = first + 4
    is_open = False  # within an instruction of several lines
    for number, line in enumerate(lines, start=1):
        if BEGIN_FUNCTION.match(line):
            scope = base + 2 * len(lines) + number
            metadata.append(
                f'!{scope} = distinct !DISubprogram(name: "f", scope: !{first + 1},'
                f" file: !{first + 1}, line: {number}, type: !{first + 2},"
                f" unit: !{first}, spFlags: DISPFlagDefinition)"
            )
            line = f"{line[:-2]} !dbg !{scope} {{"
        elif line.startswith("}"):
            scope = 0
        elif scope and (_INSTRUCTION.match(line) or is_open):
            is_open = line.endswith("[") or (is_open and not line.lstrip().startswith("]"))
            if not is_open:
                line = f"{line}, !dbg !{base + number}"
                metadata.append(f"!{base + number} = !DILocation(line: {number}, scope: !{scope})")
        result.append(line)
    result += [
        f"!llvm.dbg.cu = !{{!{first}}}",
        f"!llvm.module.flags = !{{!{first + 3}}}",
        f"!{first} = distinct !DICompileUnit(language: DW_LANG_C, file: !{first + 1},"
        " emissionKind: LineTablesOnly)",
        f'!{first + 1} = !DIFile(filename: "kernel.ll", directory: "/")',
        f"!{first + 2} = !DISubroutineType(types: !{{}})",
        f'!{first + 3} = !{{i32 2, !"Debug Info Version", i32 3}}',
        *metadata,
    ]
    return "\n".join(result)


def _instructions(text: str, machine: Any) -> Iterator[tuple[int, str]]:
    """Yield the line and the kind of each arithmetic instruction of the code for a module."""
    line = 0
    for row in machine.emit_assembly(parsed(text)).split("\n"):
        words = row.split()
        if not words:
            continue
        if words[0] == ".loc":
            line = int(words[2])
        elif (match := _KINDS.match(words[0])) and _VECTOR_END.search(words[0]):
            yield line, "fma" if match["fma"] else match["other"]


def operations(text: str, machine: Any) -> Counter[str]:
    """Count the arithmetic instructions of the code.

    Sums, differences and products are one kind: twice a number is also its sum with itself.
    """
    kinds = (kind for _, kind in _instructions(text, machine))
    return Counter(kind if kind in {"fma", "div"} else "add" for kind in kinds)


def operations_by_line(text: str, machine: Any) -> Mapping[int, Counter[str]]:
    """Count the arithmetic instructions that come from each line of what `numbered` returned."""
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for line, kind in _instructions(text, machine):
        found[line][kind] += 1
    return found
