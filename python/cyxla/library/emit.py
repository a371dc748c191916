# SPDX-License-Identifier: Apache-2.0
"""Links the LLVM IR of functions and kernels, optimizes it, and writes object files.

LLVM ends the process at some errors, so only the child process of `worker` uses this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import llvmlite.binding as llvm

from cyxla.errors import LibraryError
from cyxla.library.assembly import parsed
from cyxla.library.driver import Source

# Kernels of up to this many instructions become part of the function; larger ones, such as unrolled
# matrix products, gain nothing and take long to optimize.
_MOST_INLINED: Final = 3000
_OPTIMIZATION: Final = 3

_HEADER: Final = re.compile(r"^target (?:datalayout|triple) = .*\n", re.M)
_ACCESS: Final = re.compile(
    r"^(?P<start>.* (?:load|store) (?:volatile )?(?P<type><[^>]+>|\w+)[ ,].*), align (?P<bytes>\d+)"
)
_ARGUMENT_ALIGNMENT: Final = re.compile(r"\bptr (?P<before>(?:\w+ )*)align \d+ ")
_ALIGNMENT_METADATA: Final = re.compile(r", !(?:align|dereferenceable) !\d+")
_ELEMENT_BYTES: Final = {
    "double": 8, "float": 4, "half": 2, "bfloat": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1,
}  # fmt: skip


class Target(NamedTuple):
    """A machine to generate code for, in LLVM's terms."""

    triple: str
    cpu: str
    features: str = ""
    abi: str = ""

    @property
    def architecture(self) -> str:
        """The first part of the triple."""
        return self.triple.partition("-")[0]


# What a target's code may use where the caller names no CPU. All of them have fused multiply-add.
_DEFAULTS: Final = {
    "x86_64": ("x86-64-v3", "", ""),
    "aarch64": ("generic", "", ""),
    "riscv64": ("generic-rv64", "+m,+a,+f,+d,+c", "lp64d"),
    "armv7": ("generic", "+vfp4,+neon", ""),
    "armv7a": ("generic", "+vfp4,+neon", ""),
    "wasm32": ("generic", "+simd128", ""),
}


def target_of(triple: str | None, cpu: str | None) -> Target:
    """Return the target of a triple, by default this machine's, and of a CPU; "native" is the host.

    Raises LibraryError for a triple that LLVM does not know.
    """
    _initialize()
    host = llvm.get_process_triple()
    triple = triple or host
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise LibraryError(
            f"target {triple!r}: {error}; give a triple such as 'aarch64-linux-gnu'"
        ) from None
    known = Target(triple, *_DEFAULTS.get(triple.partition("-")[0], ("", "", "")))
    if cpu == "native":
        if known.architecture != host.partition("-")[0]:
            raise LibraryError(
                f"cpu 'native' is this machine's, {llvm.get_host_cpu_name()!r}, but the target is"
                f" {triple!r}; name one of its processors, or leave cpu out"
            )
        return known._replace(cpu=llvm.get_host_cpu_name(), features=_host_features())
    return known if cpu is None else known._replace(cpu=cpu, features="")


def machine_of(target: Target, *, jit: bool = False) -> Any:
    """Return LLVM's target machine, for position-independent code unless it is for `jit`."""
    _initialize()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=_OPTIMIZATION,
        reloc="default" if jit else "pic",
        codemodel="jitdefault" if jit else "default",
        abiname=target.abi,
    )


def link(sources: Iterable[Source], target: Target, more: str = "") -> Any:
    """Return one optimized module with the functions, and nothing else that others can see.

    Args:
        sources: the functions.
        target: the machine.
        more: IR of further functions.

    Raises LibraryError when LLVM cannot read a module.
    """
    machine = machine_of(target)
    whole = parsed(_with_header(more, machine), "the library's own functions")
    apart = []
    for source in sources:
        whole.link_in(_function_module(source, machine))
        apart += [(source, symbol) for symbol in sorted(source.apart)]
    options = llvm.create_pipeline_tuning_options(_OPTIMIZATION)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(whole, builder)
    # The plugin has optimized its kernels, and generated code from what is in their IR now.
    for source, symbol in apart:
        whole.link_in(_kernel_module(source, symbol, machine))
        whole.get_function(_apart_name(source, symbol)).linkage = llvm.Linkage.internal
    whole.verify()
    return whole


def any_alignment(text: str) -> str:
    """Return a kernel's IR for arrays that are aligned as their elements.

    XLA aligns arrays to 64 bytes and says so at each access.
    """
    return "\n".join(_relaxed(line) for line in text.split("\n"))


def _relaxed(line: str) -> str:
    line = _ALIGNMENT_METADATA.sub("", line)
    if match := _ACCESS.match(line):
        element = match["type"].rpartition(" x ")[2].rstrip(">")
        most = _ELEMENT_BYTES.get(element, int(match["bytes"]))
        end = line[match.end("bytes") :]
        return f"{match['start']}, align {min(most, int(match['bytes']))}{end}"
    return _ARGUMENT_ALIGNMENT.sub(r"ptr \g<before>", line)


def _function_module(source: Source, machine: Any) -> Any:
    """Return a function with the kernels that become part of it."""
    module = parsed(_with_header(source.text, machine), f"the function {source.name!r}")
    own = {function.name for function in module.functions if not function.is_declaration}
    for symbol in source.kernels:
        if symbol in source.apart:
            module.get_function(symbol).name = _apart_name(source, symbol)
        else:
            module.link_in(_kernel_module(source, symbol, machine))
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = llvm.Linkage.internal
    return module


def _kernel_module(source: Source, symbol: str, machine: Any) -> Any:
    """Return a kernel's module; only the kernel is visible in it."""
    text = any_alignment(source.kernels[symbol])
    module = parsed(_with_header(text, machine), f"the kernel {symbol!r}")
    is_apart = symbol in source.apart
    for function in module.functions:
        if function.is_declaration:
            continue
        is_inlined = not is_apart and _num_instructions(function) <= _MOST_INLINED
        function.add_function_attribute("alwaysinline" if is_inlined else "noinline")
        function.add_function_attribute("nounwind")
        if function.name != symbol:
            function.linkage = llvm.Linkage.internal
    if is_apart:
        module.get_function(symbol).name = _apart_name(source, symbol)
    return module


def _apart_name(source: Source, symbol: str) -> str:
    return f"{source.name}.{symbol}"


def _num_instructions(function: Any) -> int:
    return sum(1 for block in function.blocks for _ in block.instructions)


def _with_header(text: str, machine: Any) -> str:
    header = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
    return header + _HEADER.sub("", text)


def _host_features() -> str:
    return str(llvm.get_host_cpu_features().flatten())


def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
