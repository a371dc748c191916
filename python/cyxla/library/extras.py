# SPDX-License-Identifier: Apache-2.0
"""Writes what lies beside a library on request: a Fortran module, pkg-config and CMake files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cyxla.dtypes import ElementType
from cyxla.errors import ArgumentError
from cyxla.library.interface import LibraryFunction, Parameter

# The Fortran type of an element; complex numbers are Fortran's, unsigned integers their bits.
_FORTRAN_TYPES: Final = {
    "float": "real(c_float)",
    "double": "real(c_double)",
    "int8_t": "integer(c_int8_t)",
    "int16_t": "integer(c_int16_t)",
    "int32_t": "integer(c_int32_t)",
    "int64_t": "integer(c_int64_t)",
}
_FORTRAN_COMPLEX: Final = {
    ElementType.C64: "complex(c_float_complex)",
    ElementType.C128: "complex(c_double_complex)",
}


class Described(NamedTuple):
    """A library for its extras: its name, file, C functions, and whether it needs libm."""

    name: str
    path: Path
    functions: Sequence[LibraryFunction]
    needs_libm: bool


def write_extras(library: Described, extras: Collection[str]) -> dict[Path, str]:
    """Return the files of these extras, by path.

    Raises ArgumentError for an extra that is unknown or not for this kind of file.
    """
    files = {}
    for extra in extras:
        if extra not in _WRITERS:
            raise ArgumentError(f"extras: {extra!r} is not one of {', '.join(_WRITERS)}")
        suffix, write = _WRITERS[extra]
        if extra != "fortran" and library.path.suffix not in {".a", ".so"}:
            raise ArgumentError(
                f"extras: {extra!r} is for static and shared libraries, not for"
                f" {library.path.suffix!r}"
            )
        files[library.path.with_name(suffix.format(library.name))] = write(library)
    return files


def check_extras(extras: Collection[str], path: Path) -> None:
    """Raise ArgumentError as `write_extras` does, before anything is built."""
    write_extras(Described("library", path, (), False), extras)


def _fortran(library: Described) -> str:
    # The module's name must differ from those in it.
    subroutines = _fortran_names([function.name for function in library.functions])
    module = _fortran_names([*subroutines, library.name])[-1]
    lines = [
        "! SPDX-License-Identifier: Apache-2.0",
        "! This file is generated. Dimensions are those of the C header reversed: the last index",
        "! varies fastest in C, the first in Fortran.",
        f"module {module}",
        "  use, intrinsic :: iso_c_binding",
        "  implicit none",
        "  interface",
    ]
    for name, function in zip(subroutines, library.functions, strict=True):
        lines += _subroutine(name, function)
    return "\n".join([*lines, "  end interface", "end module", ""])


def _subroutine(subroutine: str, function: LibraryFunction) -> Sequence[str]:
    parameters = [
        *((each, "in") for each in function.inputs),
        *((each, "out") for each in function.outputs),
    ]
    names = _fortran_names([each.name for each, _ in parameters])
    listed = [*names, "workspace"] if function.workspace_bytes else names
    lines = [
        f"    subroutine {subroutine}( &",
        *(f"        {name}, &" for name in listed[:-1]),
        *(f"        {name} &" for name in listed[-1:]),
        f'        ) bind(c, name="{function.name}")',
        "      import",
    ]
    lines += [_declaration(name, *each) for name, each in zip(names, parameters, strict=True)]
    if function.workspace_bytes:
        lines.append(
            f"      integer(c_int8_t), intent(inout) :: workspace({function.workspace_bytes})"
            "  ! aligned to 64"
        )
    return [*lines, "    end subroutine"]


def _declaration(name: str, parameter: Parameter, direction: str) -> str:
    array = parameter.array
    c_type = parameter.c_type.removeprefix("u")
    type_ = _FORTRAN_COMPLEX.get(array.element_type) or _FORTRAN_TYPES[c_type]
    optional = ", optional" if parameter.is_optional else ""
    shape = ", ".join(str(size) for size in reversed(array.shape))
    dimensions = f"({shape})" if shape else ""
    return f"      {type_}, intent({direction}){optional} :: {name}{dimensions}"


def _fortran_names(names: Sequence[str]) -> list[str]:
    """Return a Fortran name for each: it begins with a letter, and case does not matter.

    Names of iso_c_binding begin with "c_" and must not be hidden.
    """
    found: list[str] = []
    for name in names:
        base = f"a{name}" if name.lower().startswith(("_", "c_")) else name
        candidate, count = base, 1
        while candidate.lower() in map(str.lower, found):
            count += 1
            candidate = f"{base}_{count}"
        found.append(candidate)
    return found


def _pkg_config(library: Described) -> str:
    libraries = "-lm" if library.needs_libm else ""
    return (
        "prefix=${pcfiledir}\n\n"
        f"Name: {library.name}\n"
        "Description: functions built from JAX by cyxla\n"
        "Version: 1\n"
        "Cflags: -I${prefix}\n"
        f"Libs: ${{prefix}}/{library.path.name} {libraries}\n"
    )


def _cmake(library: Described) -> str:
    kind = "STATIC" if library.path.suffix == ".a" else "SHARED"
    libraries = "\n  INTERFACE_LINK_LIBRARIES m" if library.needs_libm else ""
    target = f"{library.name}::{library.name}"
    return (
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# This file is generated.\n"
        f"if(TARGET {target})\n  return()\nendif()\n"
        f"add_library({target} {kind} IMPORTED)\n"
        f"set_target_properties({target} PROPERTIES\n"
        f'  IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{library.path.name}"\n'
        f'  INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}"{libraries})\n'
    )


_WRITERS: Final[dict[str, tuple[str, Callable[[Described], str]]]] = {
    "fortran": ("{}.f90", _fortran),
    "pkg-config": ("{}.pc", _pkg_config),
    "cmake": ("{}-config.cmake", _cmake),
}
