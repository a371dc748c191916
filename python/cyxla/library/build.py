# SPDX-License-Identifier: Apache-2.0
"""`build_library`, which makes a C library of programs."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cyxla import runtime
from cyxla.abi import package_version
from cyxla.errors import ArgumentError, LibraryError
from cyxla.library.archive import write_archive
from cyxla.library.descriptor import write_cpu_check
from cyxla.library.driver import Source
from cyxla.library.extras import Described, check_extras, write_extras
from cyxla.library.flushing import check_flushing
from cyxla.library.header import write_header
from cyxla.library.interface import LibraryFunction, functions_of
from cyxla.library.linker import link_shared
from cyxla.library.source import Compiled, compile_function, output_bytes
from cyxla.library.symbols import undefined_symbols
from cyxla.library.verify import first_difference
from cyxla.library.worker import Built, Job, Request, build
from cyxla.program.program import Program
from cyxla.program.signature import identifier

if TYPE_CHECKING:
    from cyxla.library.emit import Target

__all__ = ["Library", "LibraryFunction", "build_library"]

# The first version of PJRT whose plugin writes into its IR which products and sums may be fused.
_MARKS_CONTRACT: Final = (0, 115)
# Of the trials of a program whose loops may not end.
_LEAST_TRIALS: Final = 32
_SUFFIXES: Final = (".o", ".a", ".so", ".dll", ".wasm")


class Library(NamedTuple):
    """What `build_library` wrote.

    Attributes:
        path: the library.
        header: its C header.
        size_bytes: the size of the library's file.
        undefined_symbols: what its object file needs from elsewhere, such as `sin` of the
            mathematics library.
        functions: its functions by name.
        extras: the further files.
    """

    path: Path
    header: Path
    size_bytes: int
    undefined_symbols: tuple[str, ...]
    functions: Mapping[str, LibraryFunction]
    extras: tuple[Path, ...] = ()


def build_library(
    programs: Program | Sequence[Program] | Mapping[str, Program],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    target: str | None = None,
    cpu: str | None = None,
    exact: bool = True,
    flush_subnormals: bool = False,
    optional: Collection[str] = (),
    extras: Collection[str] = (),
    linker: str | None = None,
) -> Library:
    """Build a C library of programs, which needs neither cyxla nor Python nor XLA when it runs.

    The library has a C function for each program. It takes pointers to the inputs, then to the
    outputs, keeps no state, allocates nothing, cannot fail, and may be called by any number of
    threads at once. A header is written beside it.

    Results are the plugin's: every function is compared with its program, executed by the plugin,
    on 256 sets of inputs, with subnormal numbers flushed to zero in both; every number has to be
    equal in every bit. Payloads and signs of NaN may differ, and functions of the mathematics
    library are those of the machine it runs on. A library for another machine is compared on this
    one, in code made of the same LLVM IR.

    Needs llvmlite (`pip install 'cyxla[build]'`) and the CPU plugin.

    Args:
        programs: a program, several, or `{name: program}` with the names of the C functions;
            otherwise they are named as the programs.
        path: the file to write. Its suffix says what: ".o" (an object file), ".a" (a static
            library), ".so", ".dll" (shared libraries) or ".wasm" (a WebAssembly module). The header
            has the same name with the suffix ".h".
        name: with it every function's name begins with it and an underscore.
        target: the triple of the machine to build for, such as "aarch64-linux-gnu"; this one by
            default.
        cpu: LLVM's name of the processor; "native" for this machine's. By default any processor of
            the target with fused multiply-add will do: x86-64-v3 on x86-64.
        exact: False also builds programs with small matrix products (float32 and float64, at most
            128 columns in the factor and 32 x 128 results). These add in another order than in the
            program as it is compiled otherwise; results agree within 1e-5 (float32) or 1e-10
            (float64) of an output's largest value, which is checked.
        flush_subnormals: True sets the processor to treat subnormal numbers as zero during a call,
            as the plugin does, and restores its state. This takes 5 to 20 ns. For x86-64 and
            AArch64.
        optional: names of outputs (parameters in the header) for which callers may pass NULL.
        extras: what else to write beside the library: "fortran" (a module with interfaces of
            iso_c_binding), "pkg-config" or "cmake" (NAME-config.cmake with a target NAME::NAME).
        linker: the program that links shared libraries and WebAssembly modules; by default the
            system's `cc`, the target's gcc, or `wasm-ld`.

    Raises:
        ArgumentError: a name is not a C identifier or comes twice, the suffix is unknown, the
            folder does not exist, or `optional` names no output.
        LibraryError: llvmlite or the linker is missing, the target is unknown, a program has a step
            that only the plugin runs (the message names it), or its function did not give the
            program's results. Nothing is written then.
        PluginError, CompileError: see `compile_program`.
    """
    functions = functions_of(programs, name, optional)
    place = _checked_path(path)
    check_extras(extras, place)
    _check_llvmlite()
    from cyxla.library.emit import target_of

    machine = target_of(target, cpu)
    if flush_subnormals:
        check_flushing(machine.architecture)
    compiled = [compile_function(function, exact=exact) for function in functions]
    for each in compiled:
        _check_instructions(each.source, machine.architecture, is_baseline=cpu is None)
    stem = identifier(name or place.stem)
    cpu_check = f"{stem}_cpu_ok" if machine.architecture == "x86_64" and cpu is None else None
    extra_text = write_cpu_check(cpu_check) if cpu_check else ""
    built = _build_equal(compiled, Request((), extra_text, machine, flush_subnormals))
    if machine.architecture != "x86_64":
        _check_none_apart(built, machine.triple)
    exported = [symbol for f in functions for symbol in (f.name, f"{f.name}_function")]
    exported += [cpu_check] if cpu_check else []
    described = {each.name: each for each in _described(compiled, built)}
    undefined = tuple(sorted(undefined_symbols(built.code)))
    notes = _notes(described, machine, undefined, exact=exact)
    header = write_header(stem, list(described.values()), notes, cpu_check)
    content = built.code
    if place.suffix == ".a":
        content = write_archive("cyxla.o", built.code, exported)
    elif place.suffix != ".o":
        content = link_shared(built.code, place.name, machine.triple, exported, linker)
    header_path = place.with_suffix(".h")
    more = write_extras(Described(stem, place, list(described.values()), bool(undefined)), extras)
    texts = {header_path: header, **more}
    _write({place: content, **{file: text.encode() for file, text in texts.items()}})
    return Library(
        place,
        header_path,
        len(content),
        undefined,
        described,
        tuple(more),
    )


def _described(compiled: Sequence[Compiled], built: Built) -> Iterator[LibraryFunction]:
    for each, found in zip(compiled, built.outputs, strict=True):
        name, _, inputs, outputs = each.function
        num_trials = sum(results is not None for results in found)
        yield LibraryFunction(
            name, inputs, outputs, each.source.workspace_bytes, built.apart[name], num_trials
        )


def _checked_path(path: str | os.PathLike[str]) -> Path:
    place = Path(path)
    if place.suffix not in _SUFFIXES:
        raise ArgumentError(
            f"path {str(place)!r} must end in {', '.join(_SUFFIXES)}, which says what to write"
        )
    if not place.parent.is_dir():
        raise ArgumentError(f"path {str(place)!r}: the folder {str(place.parent)!r} does not exist")
    if not os.access(place.parent, os.W_OK):
        raise ArgumentError(f"path {str(place)!r}: the folder cannot be written to")
    return place


def _check_llvmlite() -> None:
    if importlib.util.find_spec("llvmlite") is None:
        raise LibraryError(
            "build_library needs llvmlite, which generates the code; install it with"
            " pip install 'cyxla[build]'"
        )


def _check_instructions(source: Source, architecture: str, *, is_baseline: bool) -> None:
    """Raise LibraryError for kernels with instructions that the target does not have."""
    prefix = "llvm.x86.avx512" if architecture == "x86_64" else "llvm.x86."
    if architecture == "x86_64" and not is_baseline:
        return
    for symbol, text in source.kernels.items():
        if (start := text.find(prefix)) >= 0:
            instruction = text[start : text.index("(", start)]
            advice = "; pass cpu='native'" if architecture == "x86_64" else ""
            raise LibraryError(
                f"the function {source.name!r} cannot be built for this target: the plugin wrote"
                f" its kernel {symbol!r} with {instruction}, an instruction of this machine's"
                f" processor{advice}"
            )


def _build_equal(compiled: Sequence[Compiled], request: Request) -> Built:
    """Build the functions; those that differ again, with all kernels as the plugin has them."""
    apart: dict[str, frozenset[str]] = {}
    for is_last in (False, True):
        built = build(request._replace(jobs=[_job(each, apart) for each in compiled]))
        differing = {
            each.function.name: text
            for each, found in zip(compiled, built.outputs, strict=True)
            if (text := _difference(each, found))
        }
        if not differing:
            return built
        if is_last:
            break
        apart = {
            each.function.name: frozenset(each.source.kernels)
            for each in compiled
            if each.function.name in differing
        }
    name, text = next(iter(differing.items()))
    raise LibraryError(
        f"the function {name!r} does not give the program's results, so no library was written:"
        f" {text}"
    )


def _check_none_apart(built: Built, triple: str) -> None:
    """Raise LibraryError for a kernel whose fused operations only x86's code generator chooses."""
    for name, symbols in built.apart.items():
        if symbols:
            raise LibraryError(
                f"the function {name!r} cannot be built for {triple} with the same bits: it could"
                f" not be written down which products and sums of its kernel {symbols[0]!r} are"
                " fused; build it for x86-64"
            )


def _job(compiled: Compiled, apart: Mapping[str, frozenset[str]]) -> Job:
    name = compiled.function.name
    return Job(
        compiled.source._replace(apart=apart.get(name, frozenset())),
        runtime.runtime_info().api_version < _MARKS_CONTRACT,
        [[array.tobytes() for array in arrays] for arrays in compiled.inputs],
        output_bytes(compiled.function),
        compiled.may_hang,
    )


def _difference(compiled: Compiled, found: Sequence[Sequence[bytes] | None]) -> str:
    num_ended = sum(results is not None for results in found)
    if num_ended < _LEAST_TRIALS:
        return f"its loops ended on only {num_ended} of {len(found)} trial inputs"
    outputs = compiled.function.program.outputs
    return first_difference(compiled.executable.run, outputs, compiled.inputs, found)


def _notes(
    functions: Iterable[str], machine: Target, undefined: Collection[str], *, exact: bool
) -> list[str]:
    plugin = runtime.runtime_info().plugin
    notes = [
        f"{', '.join(functions)}: built from JAX functions by cyxla {package_version()} for"
        f" {machine.triple} ({machine.cpu or 'any processor'}), with XLA's compiler of"
        f" {plugin.path.name}. This file is generated.",
        "In the trials named below every number of every output was equal, in every bit, to the"
        " program's, with subnormal numbers flushed to zero in both. Not compared: the sign and the"
        " payload of NaN. Functions of the mathematics library, such as sin, are those of the"
        " machine that this runs on, so their last bit may differ there.",
    ]
    if {"fma", "fmaf"} & set(undefined):
        notes.append(
            "This processor has no instruction for a fused multiply-add, so each is a call of fma,"
            " which makes the functions several times slower."
        )
    if not exact:
        notes.append(
            "Built with exact=False: small matrix products add in another order than in JAX."
        )
    return notes


def _write(files: Mapping[Path, bytes]) -> None:
    """Write all files, or none: each appears whole, under its name."""
    written: list[Path] = []
    try:
        for path, content in files.items():
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            written.append(temporary)
            temporary.write_bytes(content)
        for path in files:
            path.with_name(f".{path.name}.{os.getpid()}").replace(path)
    except OSError as error:
        raise LibraryError(f"cannot write {error.filename!r}: {error.strerror}") from error
    finally:
        for temporary in written:
            temporary.unlink(missing_ok=True)
