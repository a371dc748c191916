# SPDX-License-Identifier: Apache-2.0
"""Writes the C header of a library, for C99 and C++."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from cyxla.library.interface import LibraryFunction, Parameter

# Written into every header: a program may include several.
_SHARED: Final = """\
/* The same in every library, so that one program can handle any function. */
#ifndef CYXLA_LIBRARY_FUNCTION
#define CYXLA_LIBRARY_FUNCTION 1

#if defined(__cplusplus)
#define CYXLA_RESTRICT
#else
#define CYXLA_RESTRICT restrict
#endif

/* An input or output: dense and row-major. */
typedef struct cyxla_library_array {
  const char *name;
  int32_t element_type; /* a number of PJRT_Buffer_Type: 1 bool, 11 float, 12 double */
  int32_t rank;
  const int64_t *dimensions;
  uint64_t size_bytes;
} cyxla_library_array;

typedef struct cyxla_library_function {
  const char *name;
  const cyxla_library_array *inputs;
  const cyxla_library_array *outputs;
  uint64_t num_inputs;
  uint64_t num_outputs;
  uint64_t workspace_bytes; /* 0, or the size of the memory that `workspace` points to */
  void (*call)(const void *const *inputs, void *const *outputs, void *workspace);
} cyxla_library_function;
#endif
"""
_WIDTH: Final = 90


def write_header(
    guard: str,
    functions: Sequence[LibraryFunction],
    notes: Iterable[str],
    cpu_check: str | None,
) -> str:
    """Return the text of a header.

    Args:
        guard: the library's name, for the include guard.
        functions: what it declares.
        notes: paragraphs for the comment at the top.
        cpu_check: the name of the function that tells whether this CPU can run the library.
    """
    macro = f"{guard.upper()}_H_"
    parts = [_comment([*notes, _CONTRACT]), f"#ifndef {macro}\n#define {macro}\n"]
    parts += ["#include <stdint.h>\n", _SHARED, '#ifdef __cplusplus\nextern "C" {\n#endif\n']
    if cpu_check:
        parts.append(
            _comment(["Returns 1 if this processor has what the functions need, 0 otherwise."])
            + f"int {cpu_check}(void);\n"
        )
    for function in functions:
        parts.append(_declaration(function))
    parts.append(f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {macro} */\n")
    return "\n".join(parts)


_CONTRACT: Final = (
    "Every array is dense and row-major, at any address that is aligned for its elements. Inputs"
    " are read only. No output may overlap an input or another output. The functions keep no"
    " state, allocate nothing, call nothing back and cannot fail; any number of threads may call"
    " them at once."
)


def _declaration(function: LibraryFunction) -> str:
    parameters = [_parameter(each, "const ") for each in function.inputs]
    parameters += [_parameter(each, "") for each in function.outputs]
    notes = [_array_note(each, "in") for each in function.inputs]
    notes += [_array_note(each, "out") for each in function.outputs]
    if function.workspace_bytes:
        parameters.append("void *CYXLA_RESTRICT workspace")
        notes.append(
            f"  workspace: {function.workspace_bytes} bytes for temporaries, aligned to 64; each"
            " thread needs its own"
        )
    opening = f"void {function.name}("
    joined = ", ".join(parameters)
    if len(opening) + len(joined) > _WIDTH:
        joined = ",\n".join(["", *(f"    {each}" for each in parameters)])[1:]
    notes = [note.replace("*/", "* /") for note in notes]
    notes.append(f"  equal to the program in {function.num_trials} trials")
    lines = [f"/* {function.name}:", *notes, " */", f"{opening}{joined});"]
    lines.append(f"const cyxla_library_function *{function.name}_function(void);")
    return "\n".join([*lines, ""])


def _parameter(parameter: Parameter, qualifier: str) -> str:
    if parameter.array.shape == () and parameter.num_elements == 1 and not qualifier:
        return f"{parameter.c_type} *CYXLA_RESTRICT {parameter.name}"
    # An array parameter of C needs at least one element.
    size = max(parameter.num_elements, 1)
    return f"{qualifier}{parameter.c_type} {parameter.name}[CYXLA_RESTRICT {size}]"


def _array_note(parameter: Parameter, direction: str) -> str:
    note = f"  {parameter.name}: {direction}, {parameter.description}"
    if parameter.array.name != parameter.name:
        note += f", {parameter.array.name}"
    return note + ("; may be NULL" if parameter.is_optional else "")


def _comment(paragraphs: Iterable[str]) -> str:
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [*textwrap.wrap(paragraph.replace("*/", "* /"), _WIDTH - 3), ""]
    return "/* " + "\n * ".join(lines[:-1]).replace(" * \n", " *\n") + " */\n"
