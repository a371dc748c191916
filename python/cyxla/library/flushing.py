# SPDX-License-Identifier: Apache-2.0
"""Makes a function treat subnormal numbers as zero, as the plugin does."""

from __future__ import annotations

from typing import Final, NamedTuple

from cyxla.errors import LibraryError
from cyxla.library.driver import Source, quoted


class _State(NamedTuple):
    """How to read and write a processor's floating-point state, its type, and the bits to set."""

    read: str
    write: str
    type: str
    bits: int
    declarations: str


_STATES: Final = {
    "x86_64": _State(  # MXCSR: denormals are zero, flush to zero
        read="""\
  %memory = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %memory)
  %state = load i32, ptr %memory""",
        write="""\
  store i32 {state}, ptr %memory
  call void @llvm.x86.sse.ldmxcsr(ptr %memory)""",
        type="i32",
        bits=1 << 15 | 1 << 6,
        declarations="""\
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)""",
    ),
    "aarch64": _State(  # FPCR: flush to zero
        read="  %state = call i64 @llvm.aarch64.get.fpcr()",
        write="  call void @llvm.aarch64.set.fpcr(i64 {state})",
        type="i64",
        bits=1 << 24,
        declarations="""\
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)""",
    ),
}


def check_flushing(architecture: str) -> None:
    """Raise LibraryError unless this kind of processor has such a state."""
    if architecture not in _STATES:
        raise LibraryError(
            f"flush_subnormals is for {' and '.join(_STATES)}, not for {architecture}; leave it out"
        )


def write_flushing(source: Source, architecture: str) -> Source:
    """Return the function with the state set while it computes, and the caller's restored.

    The arithmetic gets a function of its own, as LLVM does not order it against the state.
    """
    state = _STATES[architecture]
    start = f"define void @{quoted(source.name)}("
    before, _, rest = source.text.partition(start)
    parameters, _, rest = rest.partition(")")
    body = quoted(f"{source.name}.body")
    arguments = ", ".join(f"ptr {each.rpartition(' ')[2]}" for each in parameters.split(", "))
    lines = [
        state.declarations,
        f"{start}{parameters}) nounwind {{",
        state.read,
        f"  %flushing = or {state.type} %state, {state.bits}",
        state.write.format(state="%flushing"),
        f"  call void @{body}({arguments if parameters else ''})",
        state.write.format(state="%state"),
        "  ret void",
        "}",
    ]
    text = f"{before}define internal void @{body}({parameters}) noinline{rest}"
    return source._replace(text="\n".join([text, *lines, ""]))
