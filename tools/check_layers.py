# SPDX-License-Identifier: Apache-2.0
"""Checks that the arrows between cyxla's layers point one way, and the sizes and licences of files.

    include/cyxla <- src/base <- src/pjrt <- src/direct <- src/runtime <- _runtime.* <- *.py

It prints 'file:line: reason' for each violation and exits with 1 when there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# A layer may include from itself and from what stands before it.
LAYERS = ("include/cyxla", "src/base", "src/pjrt", "src/direct", "src/runtime", "python/cyxla")

# The only headers of the C library and of POSIX that src/ may use; C++ has the rest without '.h'.
SYSTEM_HEADERS = {
    "dlfcn.h", "elf.h", "fcntl.h", "link.h", "pthread.h", "sched.h", "sys/mman.h",
    "sys/resource.h", "sys/syscall.h", "sys/types.h", "sys/wait.h", "unistd.h", "xmmintrin.h",
}  # fmt: skip
PJRT_HEADER = "pjrt_c_api.h"
PJRT_HEADER_USERS = ("src/pjrt/", "python/cyxla/_pjrt.pxd")

MAX_LINES = 400
SHORTER_FILES = {"include/cyxla/cyxla.h": 220, "src/runtime/execute.cpp": 200}

# Only these know jax. The second set works without it, so it imports jax, and the first set, late:
# inside functions, or for type checkers alone.
JAX_MODULES = {"arguments", "callback_calls", "stablehlo", "tracing"}
LATE_JAX_MODULES = {"compilation", "debug_options", "jaxlib_targets", "lowering"}
# These, and plugin_*, work without the extension module, so they import nothing that needs it.
PURE_MODULES = {"abi", "dtypes", "errors", "memory", "plugins"}

CYTHON_SUFFIXES = (".pyx", ".pxd", ".pxi")
SOURCE_SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".py", ".pyx", ".pxd", ".pxi", ".pyi", ".cmake"}
SOURCE_NAMES = {"CMakeLists.txt", "Makefile", "bootstrap", "meson.build", "run"}
SOURCE_FOLDERS = (
    ".ci", "benchmarks", "cmake", "examples", "include", "python", "src", "tests", "tools",
)  # fmt: skip
SIZED_FOLDERS = ("include", "src", "python")

INCLUDE = re.compile(r"""^\s*#\s*include\s*([<"])([^>"]+)[>"]""")
EXTERN = re.compile(r"""^\s*cdef\s+extern\s+from\s+["']<?([^"'>]+)>?["']""")

CYTHON_IMPORT = re.compile(
    r"\s*(?:from\s+cyxla\.(\w+)|from\s+cyxla\s+c?import\s+(.*\w)|c?import\s+cyxla\.(\w+))"
)


class Violation(NamedTuple):
    """One broken rule."""

    file: Path
    line: int
    reason: str


def _layer_of(name: str) -> int | None:
    """Return the index of the layer that a path relative to the root, or to src/, belongs to."""
    for index, layer in enumerate(LAYERS):
        if name.startswith((f"{layer}/", f"{layer.removeprefix('src/')}/")):
            return index
    return None


def _include_reason(file: str, bracket: str, header: str) -> str | None:
    """Return why `file` must not include `header`, or None."""
    layer = _layer_of(file)
    assert layer is not None
    if header == PJRT_HEADER:
        return None if file.startswith(PJRT_HEADER_USERS) else f"only src/pjrt includes {header}"
    if header == "Python.h":
        allowed = file.startswith("python/") or file == "include/cyxla/cyxla_import.h"
        return None if allowed else "nothing before python/cyxla knows Python"
    if header.startswith("cyxla/"):
        return None
    target = _layer_of(header)
    if target is not None:
        if target <= layer:
            return None
        return f"{LAYERS[layer]} must not include from {LAYERS[target]}: arrows point one way"
    if bracket == '"':
        # In include/cyxla and python/cyxla headers name each other without a folder.
        beside = (ROOT / file).parent / header
        return None if beside.is_file() else f'"{header}" belongs to no layer'
    if file.startswith("src/") and header.endswith(".h") and header not in SYSTEM_HEADERS:
        return f"<{header}> is not in the list of system headers that src/ may use"
    return None


def check_includes(file: str, text: str) -> Iterator[Violation]:
    """Yield the wrong includes of a C, C++ or Cython file."""
    is_cython = file.endswith(CYTHON_SUFFIXES)
    for number, line in enumerate(text.splitlines(), start=1):
        if is_cython:
            match = EXTERN.match(line)
            bracket, header = "<", match[1] if match else ""
        else:
            match = INCLUDE.match(line)
            bracket, header = (match[1], match[2]) if match else ("", "")
        if match and (reason := _include_reason(file, bracket, header)):
            yield Violation(Path(file), number, reason)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _imports(tree: ast.AST, late: bool = False) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, module, not at import time) of each import; cyxla's own as 'cyxla.<module>'."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, late
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                module = f"cyxla.{module}".rstrip(".")
            names = [f"{module}.{alias.name}" for alias in node.names]
            for name in names if module == "cyxla" else [module]:
                yield node.lineno, name, late
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports(node, late or is_function or _is_type_checking(node))


def _is_pure(module: str) -> bool:
    return module in PURE_MODULES or module.startswith("plugin_")


def check_imports(file: str, text: str) -> Iterator[Violation]:
    """Yield the wrong imports of a Python module of the package."""
    module = Path(file).stem
    for number, imported, late in _imports(ast.parse(text, file)):
        top, _, rest = imported.partition(".")
        target = rest.partition(".")[0] if top == "cyxla" else ""
        is_jax = top in {"jax", "jaxlib"}
        reason = None
        if is_jax and module not in JAX_MODULES | LATE_JAX_MODULES:
            reason = f"only {', '.join(sorted(JAX_MODULES | LATE_JAX_MODULES))} import {top}"
        elif (is_jax or target in JAX_MODULES) and module not in JAX_MODULES and not late:
            reason = f"{module}.py works without jax: import {imported} inside a function"
        elif top == "cyxla" and _is_pure(module) and not _is_pure(target):
            reason = f"{module}.py works without the extension: it must not import {imported}"
        if reason:
            yield Violation(Path(file), number, reason)


def check_cython_imports(file: str, text: str) -> Iterator[Violation]:
    """Yield the imports of the extension module from modules that stand after it."""
    for number, line in enumerate(text.splitlines(), start=1):
        match = CYTHON_IMPORT.match(line)
        names = next(filter(None, match.groups())).split(",") if match else []
        for target in (name.split()[0] for name in names):
            if target not in {"errors", "dtypes", "memory"} and not target.startswith("_"):
                yield Violation(Path(file), number, f"{file} must not import cyxla.{target}")


def check_text(file: str, text: str) -> Iterator[Violation]:
    """Yield a file that is too long or lacks its licence line."""
    lines = text.splitlines()
    limit = SHORTER_FILES.get(file, MAX_LINES)
    if file.startswith(SIZED_FOLDERS) and len(lines) > limit:
        yield Violation(Path(file), len(lines), f"{len(lines)} lines; at most {limit} are allowed")
    if text and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield Violation(Path(file), 1, "the line 'SPDX-License-Identifier: Apache-2.0' is missing")


def source_files() -> Iterator[Path]:
    """Yield the project's source files."""
    yield from (ROOT / "CMakeLists.txt", ROOT / "Makefile", ROOT / "pyproject.toml")
    for folder in SOURCE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            is_source = path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES
            if path.is_file() and is_source:
                yield path


def check_file(path: Path) -> Iterator[Violation]:
    """Yield every violation of one file."""
    file, text = path.relative_to(ROOT).as_posix(), path.read_text()
    yield from check_text(file, text)
    if _layer_of(file) is None:
        return
    if path.suffix in {".py", ".pyi"}:
        yield from check_imports(file, text)
    else:
        yield from check_includes(file, text)
    if path.suffix in CYTHON_SUFFIXES:
        yield from check_cython_imports(file, text)


def main() -> int:
    """Check all files; print the violations and return 1 when there are any."""
    files = list(source_files())
    violations = [violation for path in files for violation in check_file(path)]
    for file, line, reason in violations:
        print(f"{file}:{line}: {reason}")
    print(f"{len(files)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
