# SPDX-License-Identifier: Apache-2.0
"""Writes, as LLVM IR, what a library has beside its functions: their descriptors, a CPU check.

The structures are those of the header that `header` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cyxla.library.driver import quoted
from cyxla.library.interface import Function, Parameter

_ARRAY: Final = "{ptr, i32, i32, ptr, i64}"
_FUNCTION: Final = "{ptr, ptr, ptr, i64, i64, i64, ptr}"

# What x86-64-v3 adds, by the register of cpuid that tells of it: leaf 1 ecx has FMA, SSSE3, SSE4,
# MOVBE, POPCNT, OSXSAVE, AVX, F16C; leaf 7 ebx has BMI1, AVX2, BMI2; leaf 0x80000001 ecx has LZCNT.
_LEAF_1_ECX: Final = sum(1 << bit for bit in (0, 9, 12, 13, 19, 20, 22, 23, 27, 28, 29))
_LEAF_7_EBX: Final = sum(1 << bit for bit in (3, 5, 8))
_LEAF_EXTENDED_ECX: Final = 1 << 5
# The state that the system saves: registers of SSE and AVX.
_SAVED_STATE: Final = 0b110


def write_descriptor(function: Function, workspace_bytes: int) -> str:
    """Write the generic call of a function, and the function that returns its descriptor."""
    lines = [*_generic_call(function, workspace_bytes > 0)]
    arrays = {"inputs": function.inputs, "outputs": function.outputs}
    for kind, parameters in arrays.items():
        elements = []
        for number, parameter in enumerate(parameters):
            text, element = _array(f"{function.name}.{kind}.{number}", parameter)
            lines += text
            elements.append(element)
        lines.append(
            f"@{quoted(f'{function.name}.{kind}')} = private constant"
            f" [{len(elements)} x {_ARRAY}] [{', '.join(elements)}]"
        )
    lines.append(_string(f"{function.name}.name", function.name))
    lines.append(
        f"@{quoted(f'{function.name}.descriptor')} = private constant {_FUNCTION} {{"
        f"ptr @{quoted(f'{function.name}.name')}, ptr @{quoted(f'{function.name}.inputs')},"
        f" ptr @{quoted(f'{function.name}.outputs')}, i64 {len(function.inputs)},"
        f" i64 {len(function.outputs)}, i64 {workspace_bytes},"
        f" ptr @{quoted(f'{function.name}.call')}}}"
    )
    lines += [
        f"define ptr @{quoted(f'{function.name}_function')}() nounwind {{",
        f"  ret ptr @{quoted(f'{function.name}.descriptor')}",
        "}",
    ]
    return "\n".join([*lines, ""])


def _generic_call(function: Function, has_workspace: bool) -> Iterator[str]:
    name = quoted(f"{function.name}.call")
    yield f"define internal void @{name}(ptr %inputs, ptr %outputs, ptr %workspace) nounwind {{"
    arguments = []
    for kind, count in (("inputs", len(function.inputs)), ("outputs", len(function.outputs))):
        for i in range(count):
            yield f"  %{kind}{i}.address = getelementptr ptr, ptr %{kind}, i32 {i}"
            yield f"  %{kind}{i} = load ptr, ptr %{kind}{i}.address"
            arguments.append(f"ptr %{kind}{i}")
    if has_workspace:
        arguments.append("ptr %workspace")
    yield f"  call void @{quoted(function.name)}({', '.join(arguments)})"
    yield "  ret void"
    yield "}"


def _array(symbol: str, parameter: Parameter) -> tuple[list[str], str]:
    array = parameter.array
    name, dimensions = f"{symbol}.name", f"{symbol}.dimensions"
    sizes = ", ".join(f"i64 {size}" for size in array.shape)
    lines = [
        _string(name, parameter.name),
        f"@{quoted(dimensions)} = private constant [{len(array.shape)} x i64] [{sizes}]",
    ]
    return lines, (
        f"{_ARRAY} {{ptr @{quoted(name)}, i32 {int(array.element_type)}, i32 {len(array.shape)},"
        f" ptr @{quoted(dimensions)}, i64 {array.size_bytes}}}"
    )


def _string(symbol: str, text: str) -> str:
    content = "".join(f"\\{byte:02X}" for byte in (*text.encode(), 0))
    return (
        f"@{quoted(symbol)} = private unnamed_addr constant"
        f' [{len(text.encode()) + 1} x i8] c"{content}"'
    )


def write_cpu_check(name: str) -> str:
    """Write a function that returns whether an x86-64 processor has all of x86-64-v3."""
    return _CPU_CHECK.format(
        name=quoted(name),
        leaf_1=_LEAF_1_ECX,
        leaf_7=_LEAF_7_EBX,
        extended=_LEAF_EXTENDED_ECX,
        state=_SAVED_STATE,
    )


_CPU_CHECK: Final = """\
define internal i32 @cpuid(i32 %leaf, i32 %register) nounwind {{
  %all = call {{i32, i32, i32}} asm sideeffect "cpuid",
    "={{ax}},={{bx}},={{cx}},{{ax}},{{cx}},~{{dx}}"(i32 %leaf, i32 0)
  %eax = extractvalue {{i32, i32, i32}} %all, 0
  %ebx = extractvalue {{i32, i32, i32}} %all, 1
  %ecx = extractvalue {{i32, i32, i32}} %all, 2
  %is_ebx = icmp eq i32 %register, 1
  %is_ecx = icmp eq i32 %register, 2
  %first = select i1 %is_ebx, i32 %ebx, i32 %eax
  %wanted = select i1 %is_ecx, i32 %ecx, i32 %first
  ret i32 %wanted
}}

define i32 @{name}() nounwind {{
  %most = call i32 @cpuid(i32 0, i32 0)
  %most_extended = call i32 @cpuid(i32 -2147483648, i32 0)
  %has_7 = icmp uge i32 %most, 7
  %has_extended = icmp uge i32 %most_extended, -2147483647
  %has_leaves = and i1 %has_7, %has_extended
  br i1 %has_leaves, label %features, label %no

features:
  %1 = call i32 @cpuid(i32 1, i32 2)
  %2 = and i32 %1, {leaf_1}
  %3 = icmp eq i32 %2, {leaf_1}
  %4 = call i32 @cpuid(i32 7, i32 1)
  %5 = and i32 %4, {leaf_7}
  %6 = icmp eq i32 %5, {leaf_7}
  %7 = call i32 @cpuid(i32 -2147483647, i32 2)
  %8 = and i32 %7, {extended}
  %9 = icmp eq i32 %8, {extended}
  %10 = and i1 %3, %6
  %11 = and i1 %10, %9
  br i1 %11, label %system, label %no

system:
  %saved = call i32 asm sideeffect "xgetbv", "={{ax}},{{cx}},~{{dx}}"(i32 0)
  %kept = and i32 %saved, {state}
  %is_kept = icmp eq i32 %kept, {state}
  br i1 %is_kept, label %yes, label %no

yes:
  ret i32 1

no:
  ret i32 0
}}
"""
