# SPDX-License-Identifier: Apache-2.0
"""Which sums are fused: what the code generator decides is written down, and kept."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

import cyxla
from cyxla import _runtime
from cyxla.library import fma
from cyxla.library.ir import kernel_texts, readable
from support.programs.check import arguments_of, lowered
from support.programs.table import select

FMA = "call double @llvm.fma.f64"


def kernel(body: str, parameters: str = "double %x, double %y, double %z", more: str = "") -> str:
    return f"define double @k({parameters}) {{\n{body}\n}}\n{more}"


def exact(body: str, **options: str) -> fma.Kernel:
    result = fma.exact_kernel(kernel(body, **options))
    assert result.is_equal
    return result


def test_a_sum_is_fused_with_its_product() -> None:
    result = exact(
        "%p = fmul contract double %x, %y\n%s = fadd contract double %p, %z\nret double %s"
    )
    assert f"%s = {FMA}(double %x, double %y, double %z)" in result.text
    assert result.num_fused == 1
    assert "contract" not in result.text


def test_a_difference_negates_what_is_subtracted() -> None:
    result = exact(
        "%p = fmul contract double %x, %y\n%s = fsub contract double %p, %z\nret double %s"
    )
    assert '%"s.negated" = fneg double %z' in result.text.replace("%s.negated", '%"s.negated"')
    result = exact(
        "%p = fmul contract double %x, %y\n%s = fsub contract double %z, %p\nret double %s"
    )
    assert "fneg double %x" in result.text
    assert result.num_fused == 1


def test_without_contract_nothing_is_fused() -> None:
    body = "  %p = fmul double %x, %y\n  %s = fadd double %p, %z\n  ret double %s"
    assert exact(body).num_fused == 0
    result = fma.exact_kernel(fma.with_contract(kernel(body)))
    assert result.num_fused == 1


def test_a_product_that_is_used_twice_stays() -> None:
    result = exact(
        "%p = fmul contract double %x, %y\n%s = fadd contract double %p, %z\n"
        "%t = fdiv double %s, %p\nret double %t"
    )
    assert result.num_fused == 0


def test_the_product_that_remains_is_not_the_fused_one() -> None:
    result = exact(
        "%p = fmul contract double %x, %y\n%q = fmul contract double %z, %z\n"
        "%s = fadd contract double %p, %q\n%t = fdiv double %s, %p\nret double %t"
    )
    assert f"%s = {FMA}(double %z, double %z, double %p)" in result.text


def test_equal_sums_have_one_decision() -> None:
    """The second sum is merged with the first, and has no instruction of its own."""
    result = exact(
        "%p = fmul contract double %x, %y\n%s = fadd contract double %p, %z\n"
        "%c = fcmp olt double %x, %y\nbr label %n\nn:\n"
        "%q = fmul contract double %x, %y\n%r = fadd contract double %q, %z\n"
        "%t = fdiv double %s, %r\nret double %t"
    )
    assert result.num_fused in (1, 2)


def test_a_product_in_another_block_is_not_seen() -> None:
    result = exact(
        "%p = fmul contract double %x, %y\n%c = fcmp olt double %x, %y\n"
        "br i1 %c, label %a, label %b\na:\n%s = fadd contract double %p, %z\nret double %s\n"
        "b:\nret double %p"
    )
    assert result.num_fused == 0


def test_twice_a_number_is_no_product() -> None:
    result = exact(
        "%p = fmul contract double %x, -2.000000e+00\n%q = fmul contract double %y, %z\n"
        "%s = fsub contract double %p, %q\nret double %s"
    )
    assert result.num_fused == 1


def test_a_sum_that_goes_into_a_fused_sum() -> None:
    result = exact(
        "%p = fmul contract double %x, %x\n%q = fmul contract double %y, %y\n"
        "%s = fadd contract double %p, %q\n%t = fadd reassoc contract double %z, %s\nret double %t"
    )
    assert result.num_fused >= 2


def test_vectors_and_floats() -> None:
    text = (
        "define <4 x float> @k(<4 x float> %x, <4 x float> %y) {\n"
        "%p = fmul contract <4 x float> %x, %y\n%s = fadd contract <4 x float> %p, %y\n"
        "ret <4 x float> %s\n}\n"
    )
    result = fma.exact_kernel(text)
    assert result.is_equal
    assert "declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)" in (
        result.text
    )


def test_fmuladd_is_fused() -> None:
    result = exact(
        "%s = call double @llvm.fmuladd.f64(double %x, double %y, double %z)\nret double %s",
        more="declare double @llvm.fmuladd.f64(double, double, double)",
    )
    assert "@llvm.fma.f64" in result.text
    assert "fmuladd" not in result.text


def test_a_reduction_keeps_its_order() -> None:
    result = exact(
        "%s = call reassoc double @llvm.vector.reduce.fadd.v4f64(double %x, <4 x double> %v)\n"
        "ret double %s",
        parameters="double %x, <4 x double> %v",
        more="declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)",
    )
    assert "call reassoc double @llvm.vector.reduce" in result.text


def test_metadata_of_the_kernel_is_dropped() -> None:
    text = (
        "define double @k(ptr %x) {\n  %v = load double, ptr %x, align 8, !invariant.load !0\n"
        "  ret double %v\n}\n!0 = !{}\n"
    )
    assert "invariant" not in fma.exact_kernel(text).text


@pytest.mark.parametrize("fault", ["left out", "one too many"])
def test_a_wrong_decision_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    original = fma._Function.fused

    def wrong(function: fma._Function) -> object:
        found = list(original(function))
        if fault == "left out":
            return iter(found[1:])
        others = [v for v in function.values.values() if v.opcode == "fadd" and not v.may_fuse]
        return iter([*found, (others[0], 0)])

    monkeypatch.setattr(fma._Function, "fused", wrong)
    body = (
        "%p = fmul contract double %x, %y\n%s = fadd contract double %p, %z\n"
        "%q = fmul double %s, %y\n%t = fadd double %q, %z\nret double %t"
    )
    assert not fma.exact_kernel(kernel(body)).is_equal


def test_ir_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(cyxla.LibraryError, match=r"LLVM 22\.1\.0 cannot read a kernel"):
        fma.exact_kernel("define double @k() {\n  ret newtype 1\n}")


PROGRAMS = (
    "arithmetic, float64", "inverse trigonometric, float64", "hyperbolic, float64", "betainc",
    "reductions, float64", "rosenbrock 10, float32", "rosenbrock 10, float64", "least squares",
    "odeint", "hock schittkowski 71",
)  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_the_plugin(name: str) -> None:
    table = {key.lower().replace("-", " "): key for key in select("direct")}
    key = table[name]
    program = lowered(select("direct")[key], arguments_of(key, select("direct")[key]))
    with tempfile.TemporaryDirectory() as folder:
        executable = cyxla.compile_program(
            program,
            options={"xla_dump_to": folder, "xla_dump_emitter_re": "llvm"},
            exact=True,
            cache=False,
            route="pjrt",
        ).executable
        plan = _runtime.read_plan(
            _runtime.serialize(executable),
            [array.size_bytes for array in program.inputs],
            [array.size_bytes for array in program.outputs],
        )
        texts = kernel_texts(Path(folder), plan.kernels)
    kernels = {symbol: fma.exact_kernel(readable(text)) for symbol, text in texts.items()}
    assert [symbol for symbol, each in kernels.items() if not each.is_equal] == []
    assert not any(re.search(r"\bcontract\b", each.text) for each in kernels.values())
