# SPDX-License-Identifier: Apache-2.0
"""Every program of the table is called directly, with the plugin's bits, or refused with a reason.

A process for each plugin compiles and compares all of them (`direct_comparison`).
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from child_process import run_process
from cpu_plugins import CPU_LIBRARIES, variables
from serialized_steps import DIRECT_KINDS
from support.programs.table import select

pytestmark = pytest.mark.parametrize("library", CPU_LIBRARIES)

SECONDS = 280

# The least number of programs that are called directly: two fewer than when this was written.
LEAST_DIRECT = {"pjrt_c_api_cpu_plugin.so": 171, "libpjrt_cpu.so": 174, "xla_cpu_pjrt.so": 176}
# The older plugins drop jaxlib's handlers for linear algebra.
MOST_UNCOMPILED = {"pjrt_c_api_cpu_plugin.so": 0, "libpjrt_cpu.so": 17, "xla_cpu_pjrt.so": 17}
# Permitted reasons to refuse programs that consist of kernels and copies.
LIMITS = (
    "several work groups",
    "an array is larger than",
    "a kernel calls __trunc",
    "was not reached by the inputs that compare both routes",
)


@functools.cache
def reports(library: str) -> dict[str, dict[str, Any]]:
    """The result of each program with the plugin."""
    script = Path(__file__).parents[1] / "direct_comparison.py"
    try:
        ended = run_process(str(script), env=variables(library), seconds=SECONDS)
        how, printed, error = f"exit code {ended.returncode}", ended.stdout, ended.stderr
        is_complete = ended.returncode == 0
    except subprocess.TimeoutExpired as expired:
        how, is_complete, error = f"not ended after {SECONDS} s", False, ""
        printed = (expired.stdout or b"").decode()
    lines = [json.loads(line) for line in printed.splitlines() if line.endswith("}")]
    names, results = lines[::2], lines[1::2]
    last = names[-1]["name"] if names else "none"
    assert is_complete, f"{how}; the last program was {last!r}\n{error[-3000:]}"
    return {start["name"]: result for start, result in zip(names, results, strict=True)}


def summary(library: str) -> str:
    """Numbers of programs by route and reason."""
    found = reports(library)
    routes = Counter(result["route"] for result in found.values())
    reasons = Counter(
        re.sub(r"^step \d+", "a step", result["reason"])[:100]
        for result in found.values()
        if result["route"] == "pjrt"
    )
    lines = [f"{library}: {dict(routes)} of {len(found)}, {seconds(found):.0f} s"]
    return "\n".join([*lines, *(f"  {count} {reason}" for reason, count in reasons.most_common())])


def seconds(found: dict[str, dict[str, Any]]) -> float:
    return sum(result.get("seconds", 0) for result in found.values())


def named(library: str, route: str) -> dict[str, dict[str, Any]]:
    return {name: r for name, r in reports(library).items() if r["route"] == route}


def test_every_bit_of_a_direct_call_is_the_plugins(library: str) -> None:
    assert len(reports(library)) == len(select("direct")) >= 100
    wrong = [
        f"{name}: {failure}"
        for name, result in named(library, "direct").items()
        for failure in result["failures"]
    ]
    assert not wrong, "\n".join(wrong)


def test_a_direct_program_has_no_reason_and_a_refused_one_has(library: str) -> None:
    assert {name: r["reason"] for name, r in named(library, "direct").items() if r["reason"]} == {}
    refused = named(library, "pjrt")
    assert [name for name, result in refused.items() if len(result["reason"]) < 20] == []
    # The reason names the kind of step that only the plugin runs, or a limit.
    words = {
        "xnn-fusion": "XNNPACK fusion",
        "ynn-fusion": "YNNPACK fusion",
        "dot": "matrix product",
        "sort": "sort",
        "topk": "top-k",
        "fft": "Fourier transform",
        "custom-call": "custom call",
    }
    for name, result in refused.items():
        causes = set(result["kinds"]) - DIRECT_KINDS
        assert causes <= set(words), (name, causes)
        named_causes = [words[cause] for cause in causes] or LIMITS
        assert any(cause in result["reason"] for cause in named_causes), (name, result)


def test_nearly_all_eligible_programs_are_called_directly(
    library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    eligible = {
        name: result
        for name, result in reports(library).items()
        if result["route"] != "none" and set(result["kinds"]) <= DIRECT_KINDS
    }
    direct = named(library, "direct")
    with capsys.disabled():
        print(f"\n{summary(library)}")
    assert set(direct) <= set(eligible), "a program with steps that only the plugin runs"
    refused = {name: result["reason"] for name, result in eligible.items() if name not in direct}
    text = "\n".join(f"{name}: {reason}" for name, reason in refused.items())
    assert len(direct) >= 0.9 * len(eligible), f"{text}\n{summary(library)}"
    assert len(direct) >= LEAST_DIRECT[library], f"{text}\n{summary(library)}"


def test_the_plugin_compiles_all_but_the_known_programs(library: str) -> None:
    uncompiled = {name: result["reason"] for name, result in named(library, "none").items()}
    text = "\n".join(f"{name}: {reason[:300]}" for name, reason in uncompiled.items())
    assert len(uncompiled) <= MOST_UNCOMPILED[library], text
