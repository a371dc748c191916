# SPDX-License-Identifier: Apache-2.0
"""What the C function of a program looks like: its name, its parameters and their C types."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from cyxla.dtypes import ElementType
from cyxla.errors import ArgumentError
from cyxla.program.program import Program
from cyxla.program.signature import ProgramArray, identifier

# The C type of an element, and how many of them an element has. Half precision is its bits.
_C_TYPES: Final = {
    ElementType.PRED: ("uint8_t", 1),
    ElementType.S8: ("int8_t", 1),
    ElementType.S16: ("int16_t", 1),
    ElementType.S32: ("int32_t", 1),
    ElementType.S64: ("int64_t", 1),
    ElementType.U8: ("uint8_t", 1),
    ElementType.U16: ("uint16_t", 1),
    ElementType.U32: ("uint32_t", 1),
    ElementType.U64: ("uint64_t", 1),
    ElementType.F16: ("uint16_t", 1),
    ElementType.BF16: ("uint16_t", 1),
    ElementType.F32: ("float", 1),
    ElementType.F64: ("double", 1),
    ElementType.C64: ("float", 2),
    ElementType.C128: ("double", 2),
}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Functions of C that kernels may call, and those that no program should lose.
_C_MATHEMATICS: Final = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos",
    "cosh", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "floor", "fma",
    "fmax", "fmin", "fmod", "frexp", "hypot", "ilogb", "ldexp", "lgamma", "llrint", "llround",
    "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf", "nan", "nearbyint",
    "nextafter", "pow", "remainder", "remquo", "rint", "round", "scalbln", "scalbn", "sin",
    "sincos", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
)  # fmt: skip
_C_FUNCTIONS: Final = frozenset({
    *(f"{name}{suffix}" for name in _C_MATHEMATICS for suffix in ("", "f", "l")),
    "abort", "atexit", "calloc", "exit", "free", "main", "malloc", "memcmp", "memcpy", "memmove",
    "memset", "realloc",
})  # fmt: skip
# Words of C99 and C++20, what the headers that ours includes define, and the last parameter.
_RESERVED: Final = frozenset(
    {
        "alignas", "alignof", "and", "and_eq", "asm", "atomic_cancel", "atomic_commit",
        "atomic_noexcept", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
        "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "const", "consteval",
        "constexpr", "constinit", "const_cast", "continue", "co_await", "co_return", "co_yield",
        "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit",
        "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int",
        "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator",
        "or", "or_eq", "private", "protected", "public", "reflexpr", "register", "reinterpret_cast",
        "requires", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert",
        "static_cast", "struct", "switch", "synchronized", "template", "this", "thread_local",
        "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unsigned",
        "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "workspace",
    }
)  # fmt: skip


class Parameter(NamedTuple):
    """An input or output of the C function.

    Attributes:
        name: its C identifier.
        array: the program's input or output.
        is_optional: whether callers may pass NULL for this output.
    """

    name: str
    array: ProgramArray
    is_optional: bool = False

    @property
    def c_type(self) -> str:
        """The C type of what the pointer points to."""
        return _C_TYPES[self.array.element_type][0] if self._has_c_type else "uint8_t"

    @property
    def num_elements(self) -> int:
        """How many of them there are."""
        if not self._has_c_type:
            return self.array.size_bytes
        return self.array.array_type.size * _C_TYPES[self.array.element_type][1]

    @property
    def description(self) -> str:
        """The element type and shape, for people."""
        shape = " x ".join(map(str, self.array.shape))
        return f"{self.array.dtype.name}, {shape or 'a scalar'}"

    @property
    def _has_c_type(self) -> bool:
        return self.array.element_type in _C_TYPES


class Function(NamedTuple):
    """The C function of a program.

    Attributes:
        name: its symbol, with the library's prefix.
        program: the program.
        inputs: its first parameters.
        outputs: the parameters after them.
    """

    name: str
    program: Program
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]

    @property
    def optional_outputs(self) -> frozenset[int]:
        """The numbers of the outputs that may be NULL."""
        return frozenset(i for i, output in enumerate(self.outputs) if output.is_optional)


class LibraryFunction(NamedTuple):
    """A function of a library.

    Attributes:
        name: its C name.
        inputs: its first parameters, in order.
        outputs: the parameters after them.
        workspace_bytes: the size of the memory that the last parameter points to; 0 if there is no
            such parameter.
        kernels_apart: the kernels that were compiled by themselves, because it could not be written
            down which of their sums the plugin fuses. They round as the plugin's do, and cost a
            call.
        num_trials: on how many sets of inputs every number of every output was equal to the
            program's, executed by the plugin.
    """

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    workspace_bytes: int
    kernels_apart: tuple[str, ...]
    num_trials: int


def functions_of(
    programs: Program | Sequence[Program] | Mapping[str, Program],
    prefix: str | None,
    optional: Collection[str],
) -> list[Function]:
    """Return the C functions of programs, which are named as the programs or by a mapping's keys.

    Raises ArgumentError for what is not a program, for a name that is not a C identifier or comes
    twice, and for an optional output that no program has.
    """
    named = _named_programs(programs)
    if not named:
        raise ArgumentError("programs is empty; give a cyxla.Program, several, or {name: program}")
    functions: dict[str, Function] = {}
    for given, program in named:
        name = f"{prefix}_{given}" if prefix else given
        if not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            raise ArgumentError(
                f"a C function cannot be called {name!r}; pass {{name: program}} with a name of"
                " letters, digits and underscores"
            )
        if name in _C_FUNCTIONS:
            raise ArgumentError(
                f"a C function called {name!r} would replace the C library's; pass"
                " {name: program} with another name, or name= for a prefix"
            )
        if name in functions or name.removesuffix("_function") in functions:
            raise ArgumentError(
                f"two functions would be called {name!r}; pass {{name: program}} with other names"
            )
        functions[name] = _function(name, program, optional)
    known = {output.name for function in functions.values() for output in function.outputs}
    if unknown := sorted(set(optional) - known):
        raise ArgumentError(
            f"optional: no output is called {unknown[0]!r}; the outputs are"
            f" {', '.join(sorted(known))}"
        )
    return list(functions.values())


def _named_programs(
    programs: Program | Sequence[Program] | Mapping[str, Program],
) -> list[tuple[str, Program]]:
    if isinstance(programs, Program):
        programs = [programs]
    if isinstance(programs, Mapping):
        named = list(programs.items())
    elif isinstance(programs, list | tuple):
        named = [(getattr(program, "name", ""), program) for program in programs]
    else:
        raise ArgumentError(
            f"programs must be a cyxla.Program, a list of them or a dict {{name: program}}, not"
            f" {type(programs).__name__}"
        )
    for name, program in named:
        if not isinstance(program, Program):
            raise ArgumentError(
                f"programs has {type(program).__name__} {name!r} instead of a cyxla.Program;"
                " cyxla.lower makes one"
            )
        if not isinstance(name, str):
            raise ArgumentError(f"the name of a C function must be a str, not {name!r}")
    return named


def _function(name: str, program: Program, optional: Collection[str]) -> Function:
    names = _unique(
        [array.name for array in program.inputs]
        + [_output_name(array.name) for array in program.outputs]
    )
    num_inputs = len(program.inputs)
    inputs = zip(names[:num_inputs], program.inputs, strict=True)
    outputs = zip(names[num_inputs:], program.outputs, strict=True)
    return Function(
        name,
        program,
        tuple(Parameter(*each) for each in inputs),
        tuple(Parameter(*each, is_optional=each[0] in optional) for each in outputs),
    )


def _output_name(name: str) -> str:
    """Return the name without the word that all outputs begin with, if something is left."""
    rest = name.removeprefix("result")
    return rest if re.search(r"[A-Za-z]", rest) else name


def _unique(names: Iterable[str]) -> list[str]:
    """Return a C identifier for each name; those that would be equal get numbers."""
    found: list[str] = []
    for name in names:
        base = identifier(name)
        base = f"{base}_" if base in _RESERVED else base
        candidate, count = base, 1
        while candidate in found:
            count += 1
            candidate = f"{base}_{count}"
        found.append(candidate)
    return found
