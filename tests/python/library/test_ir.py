# SPDX-License-Identifier: Apache-2.0
"""The LLVM IR that XLA dumps, as an older LLVM reads it."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from cyxla.errors import LibraryError
from cyxla.library.ir import DOWNGRADES, kernel_texts, readable, split_operands

# What stands in the dump, and what an older LLVM reads: one or more for each row of the table.
REWRITTEN = {
    "hexadecimal constants": [
        ("%2 = fadd double %1, f0x3FF8000000000000", "%2 = fadd double %1, 0x3FF8000000000000"),
        ("%2 = fadd float %1, f0x3DCCCCCD", "%2 = fadd float %1, 0x3FB99999A0000000"),
        ("store half f0x3E00, ptr %1, align 2", "store half 0xH3E00, ptr %1, align 2"),
        ("store bfloat f0x3FC0, ptr %1, align 2", "store bfloat 0xR3FC0, ptr %1, align 2"),
        (
            "%2 = fmul <2 x float> %1, <float f0x7FC00000, float f0x00000001>",
            "%2 = fmul <2 x float> %1, <float 0x7FF8000000000000, float 0x36A0000000000000>",
        ),
    ],
    "infinities and NaN": [
        ("%2 = fcmp one double %1, +inf", "%2 = fcmp one double %1, 0x7FF0000000000000"),
        ("%2 = fcmp one float %1, -inf", "%2 = fcmp one float %1, 0xFFF0000000000000"),
        (
            "%3 = select i1 %2, half +qnan, half %1",
            "%3 = select i1 %2, half 0xH7E00, half %1",
        ),
        (
            "%3 = phi float [ -qnan, %a ], [ %2, %b ]",
            "%3 = phi float [ 0xFFF8000000000000, %a ], [ %2, %b ]",
        ),
    ],
    "NaN with a payload": [
        ("%2 = fadd double %1, +nan(0x1)", "%2 = fadd double %1, 0x7FF0000000000001"),
        ("%2 = fadd float %1, -nan(0x200001)", "%2 = fadd float %1, 0xFFF4000020000000"),
    ],
    "decimal constants": [
        ("%2 = fmul float %1, 1.000000e-01", "%2 = fmul float %1, 0x3FB99999A0000000"),
        ("%2 = fmul double %1, 1.000000e-01", "%2 = fmul double %1, 1.000000e-01"),
        ("%2 = fmul half %1, -5.000000e-01", "%2 = fmul half %1, 0xHB800"),
    ],
    "attribute groups": [('attributes #0 = { nounwind memory(none) "a"="b" }', "")],
    "references to them": [
        (
            "define ptr @f(ptr %0) local_unnamed_addr #0 {",
            "define ptr @f(ptr %0) local_unnamed_addr {",
        )
    ],
    "memory effects": [
        ("declare double @g(double) nounwind memory(none)", "declare double @g(double) nounwind")
    ],
    "module flags": [("!llvm.module.flags = !{!3, !5}", "")],
}


def test_every_row_of_the_table_has_a_test() -> None:
    assert list(REWRITTEN) == [row.name for row in DOWNGRADES]


@pytest.mark.parametrize(
    ("dumped", "wanted"), [pair for pairs in REWRITTEN.values() for pair in pairs]
)
def test_syntax_that_is_rewritten(dumped: str, wanted: str) -> None:
    assert readable(dumped).rstrip("\n") == wanted


def test_what_is_left_as_it_is() -> None:
    lines = [
        "define ptr @inf.fusion(ptr %inf, ptr %qnan.1) {",
        "  %2 = getelementptr inbounds nuw i8, ptr %0, i64 24",
        "  br label %inf",
        "  store i32 2, ptr %2, align 4",
        "  %3 = call double @fused.0(double %x.1)",
    ]
    assert readable("\n".join(lines)).splitlines() == lines


@pytest.mark.parametrize("number", [0.1, -1e-45, 3.4028235e38, 0.0, math.pi])
def test_a_float_has_the_same_bits(number: float) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    (bits,) = struct.unpack(">I", struct.pack(">f", number))
    text = readable(f"define i32 @f() {{\n  ret i32 bitcast (float f0x{bits:08X} to i32)\n}}")
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    import ctypes

    function = ctypes.CFUNCTYPE(ctypes.c_uint32)(engine.get_function_address("f"))
    assert function() == bits


ATAN = """
define internal double @xla.atan.f64(double %0, double %1) #1 {
  %3 = tail call double @llvm.fmuladd.f64(double %0, double %0, double %1)
  ret double %3
}
define double @kernel(double %0) #0 {
  br label %2
2:
  %3 = call double @llvm.fmuladd.f64(double %0, double %0, double 1.000000e+00)
  ret double %3
}
declare double @llvm.fmuladd.f64(double, double, double)
attributes #0 = { nounwind }
attributes #1 = { nounwind "target-features"="+cx8,+sse2" }
"""


def test_functions_for_a_processor_without_fma_keep_product_and_sum() -> None:
    text = readable(ATAN)
    llvm.parse_assembly(text).verify()
    first, second = text.split("@kernel")
    assert "fmul double %0, %0" in first
    assert "fmuladd" not in first
    assert "@llvm.fmuladd.f64(double %0, double %0" in second


def test_operands_are_split_at_their_commas() -> None:
    text = "<2 x double> <double 1.0, double 2.0>, splat (double 3.0), %x"
    assert split_operands(text) == [
        "<2 x double> <double 1.0, double 2.0>",
        "splat (double 3.0)",
        "%x",
    ]


def test_kernels_are_found_by_their_symbols(tmp_path: Path) -> None:
    first = "define noalias ptr @a(ptr %0) {\n}\ndefine internal double @h() {\n}\n"
    second = 'define noalias ptr @"b-c"(ptr %0) {\n}\n'
    (tmp_path / "module_0001.p.a.ir-with-opt.ll").write_text(first)
    (tmp_path / "module_0001.p.b.ir-with-opt.ll").write_text(second)
    (tmp_path / "module_0001.p.b.ir-no-opt.ll").write_text(second)
    assert kernel_texts(tmp_path, ["b-c", "a"]) == {"a": first, "b-c": second}
    with pytest.raises(LibraryError, match="did not dump the kernel 'd'"):
        kernel_texts(tmp_path, ["a", "d"])
    (tmp_path / "module_0002.p.a.ir-with-opt.ll").write_text(first + "; another")
    with pytest.raises(LibraryError, match="dumped the kernel 'a' twice"):
        kernel_texts(tmp_path, ["a"])
