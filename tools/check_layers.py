# SPDX-License-Identifier: Apache-2.0
"""Checks that imports and includes point one way; sizes, licences and wording of files.

    include/cyxla <- src/base <- src/pjrt <- src/direct <- src/runtime <- python/cyxla

`LAYERS` has the folders inside these, and `PACKAGE` the order within the Python package. Files of
one folder may use each other, but not in a circle.

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

# A layer may include from itself and from what stands before it. The longest prefix counts.
LAYERS = (
    "include/cyxla", "src/base", "src/pjrt", "src/pjrt/ffi",
    "src/direct", "src/direct/read", "src/direct/load", "src/direct/run", "src/direct/verify",
    "src/runtime", "python/cyxla",
)  # fmt: skip

# The same for the modules and folders of python/cyxla. `__init__.py` has the package's names and
# may import anything. A stub has types only, so it may name those of later modules.
PACKAGE = (
    "errors", "abi", "dtypes", "memory", "plugins", "ffi", "_runtime", "runtime", "program",
    "lowering", "compilation", "library", "__main__",
)  # fmt: skip

# The only headers of the C library and of POSIX that src/ may use; C++ has the rest without '.h'.
SYSTEM_HEADERS = {
    "dlfcn.h", "elf.h", "fcntl.h", "link.h", "pthread.h", "sched.h", "sys/mman.h",
    "sys/resource.h", "sys/syscall.h", "sys/types.h", "sys/wait.h", "unistd.h", "xmmintrin.h",
}  # fmt: skip
PJRT_HEADER = "pjrt_c_api.h"
PJRT_HEADER_USERS = ("src/pjrt/", "python/cyxla/_pjrt.pxd")

MAX_LINES = 400
SHORTER_FILES = {"include/cyxla/cyxla.h": 220, "src/runtime/execute.cpp": 200}

# Only these know JAX. The second set works without it, so it imports JAX, and the first set, late:
# inside functions, or for type checkers alone.
JAX_MODULES = {
    "lowering.arguments", "lowering.callbacks", "lowering.jax_internals", "lowering.stablehlo",
    "lowering.tracing",
}  # fmt: skip
LATE_JAX_MODULES = {
    "compilation.compile", "compilation.debug_options", "ffi.jaxlib", "lowering.lower",
    "program.versions",
}  # fmt: skip
# JAX's private modules change without notice, so one file has all that cyxla takes from them.
JAX_PRIVATE = ("jax._src", "jaxlib._jax")
JAX_PRIVATE_MODULE = "lowering.jax_internals"

CYTHON_SUFFIXES = (".pyx", ".pxd", ".pxi")
SOURCE_SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".py", ".pyx", ".pxd", ".pxi", ".pyi", ".cmake"}
SOURCE_NAMES = {"CMakeLists.txt", "Makefile", "bootstrap", "meson.build", "run"}
SOURCE_FOLDERS = (
    ".ci", "benchmarks", "cmake", "examples", "include", "python", "src", "tests", "tools",
)  # fmt: skip
SIZED_FOLDERS = ("include", "src", "python")
# Phrases that read as if they were translated; the tests of this check have them.
PHRASES = re.compile(
    r"\b(?:(?:is|are) no (?!longer|more)|for ever\b|cannot be told|of which\b|whoever\b"
    r"|by its own making|what is not there)",
    re.IGNORECASE,
)
WORDLESS_FILES = {"tools/check_layers.py", "tests/python/project/test_checks.py"}

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
    found = [
        layer
        for layer in LAYERS
        if name.startswith((f"{layer}/", f"{layer.removeprefix('src/')}/"))
    ]
    return LAYERS.index(max(found, key=len)) if found else None


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


class Import(NamedTuple):
    """One import of a Python module; cyxla's own modules are named from the package on."""

    line: int
    module: str
    is_late: bool  # inside a function, or for type checkers
    is_for_types: bool


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _imports(tree: ast.AST, late: bool = False, types: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            names = ["a relative import"]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
            if not _module_file(module).is_dir() and module != "cyxla":
                names = [module]
        for name in names:
            yield Import(getattr(node, "lineno", 1), name, late or types, types)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports(node, late or is_function, types or _is_type_checking(node))


def _module_file(module: str) -> Path:
    """Return the file or folder of a module of cyxla, which need not exist."""
    return ROOT / "python" / module.replace(".", "/")


def _order(module: str) -> int | None:
    room = module.partition(".")[0]
    return PACKAGE.index(room) if room in PACKAGE else None


def check_imports(file: str, text: str) -> Iterator[Violation]:
    """Yield the wrong imports of a Python module of the package."""
    path = Path(file)
    module = ".".join(path.relative_to("python/cyxla").with_suffix("").parts)
    if path.stem == "__init__":
        return
    if (own := _order(module)) is None:
        yield Violation(
            path, 1, f"{module} is not in the order of PACKAGE in tools/check_layers.py"
        )
        return
    for number, imported, is_late, _ in _imports(ast.parse(text, file)):
        top, _, target = imported.partition(".")
        is_jax = top in {"jax", "jaxlib"}
        reason = None
        if imported == "a relative import":
            reason = "write the whole name of the module: from cyxla..."
        elif imported.startswith(JAX_PRIVATE) and module != JAX_PRIVATE_MODULE:
            reason = f"only {JAX_PRIVATE_MODULE} imports {imported}"
        elif is_jax and module not in JAX_MODULES | LATE_JAX_MODULES:
            reason = f"only {', '.join(sorted(JAX_MODULES | LATE_JAX_MODULES))} import {top}"
        elif (is_jax or target in JAX_MODULES) and module not in JAX_MODULES and not is_late:
            reason = f"{module} works without jax: import {imported} inside a function"
        elif top == "cyxla" and module != "__main__" and path.suffix != ".pyi":
            room = target.partition(".")[0]
            other = _order(target)
            if not room:
                reason = f"{module} must not import the package; import the module that it needs"
            elif other is None or other > own:
                reason = f"{module} must not import {imported}: {room} comes later in the package"
            elif not any(
                _module_file(imported).with_suffix(suffix).is_file() for suffix in (".py", ".pyx")
            ):
                reason = f"{imported} is not a module: import from the one that defines the name"
        if reason:
            yield Violation(path, number, reason)


def check_circles() -> Iterator[Violation]:
    """Yield each circle of modules of the package, and of files of src/ that include each other."""
    uses: dict[str, set[str]] = {}
    for path in sorted((ROOT / "python/cyxla").rglob("*.py")):
        if path.stem != "__init__":
            name = ".".join(path.relative_to(ROOT / "python").with_suffix("").parts)
            imports = _imports(ast.parse(path.read_text()))
            uses[name] = {each.module for each in imports if not each.is_for_types}
    for path in sorted((ROOT / "src").rglob("*.h")):
        lines = path.read_text().splitlines()
        includes = {match[2] for line in lines if (match := INCLUDE.match(line))}
        uses[path.relative_to(ROOT / "src").as_posix()] = includes
    for circle in _circles(uses):
        file = circle[0] if circle[0].endswith(".h") else f"{circle[0].replace('.', '/')}.py"
        folder = "src" if circle[0].endswith(".h") else "python"
        yield Violation(Path(folder, file), 1, f"a circle: {' -> '.join(circle)}")


def _circles(uses: dict[str, set[str]]) -> Iterator[list[str]]:
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> Iterator[list[str]]:
        if name in path:
            yield [*path[path.index(name) :], name]
        elif name not in done:
            for used in sorted(uses[name] & uses.keys()):
                yield from walk(used, [*path, name])
            done.add(name)

    for name in uses:
        yield from walk(name, [])


def check_cython_imports(file: str, text: str) -> Iterator[Violation]:
    """Yield the imports of the extension module from modules that come later in the package."""
    for number, line in enumerate(text.splitlines(), start=1):
        match = CYTHON_IMPORT.match(line)
        names = next(filter(None, match.groups())).split(",") if match else []
        for target in (name.split()[0] for name in names):
            order = _order(target)
            is_later = order is None or order > PACKAGE.index("_runtime")
            if is_later and not target.startswith("_"):
                yield Violation(Path(file), number, f"{file} must not import cyxla.{target}")


def check_text(file: str, text: str) -> Iterator[Violation]:
    """Yield a file that is too long or lacks its licence line."""
    lines = text.splitlines()
    limit = SHORTER_FILES.get(file, MAX_LINES)
    if file.startswith(SIZED_FOLDERS) and len(lines) > limit:
        yield Violation(Path(file), len(lines), f"{len(lines)} lines; at most {limit} are allowed")
    if text and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield Violation(Path(file), 1, "the line 'SPDX-License-Identifier: Apache-2.0' is missing")


def check_words(file: str, text: str) -> Iterator[Violation]:
    """Yield the phrases of a file that an engineer would not say."""
    if file not in WORDLESS_FILES:
        for number, line in enumerate(text.splitlines(), start=1):
            if match := PHRASES.search(line):
                yield Violation(Path(file), number, f"say {match[0].strip()!r} in plainer words")


def documents() -> Iterator[Path]:
    """Yield the documentation."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in ("benchmarks", "docs", "examples"):
        yield from sorted((ROOT / folder).rglob("*.md"))


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
    yield from check_words(file, text)
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
    violations += check_circles()
    for path in documents():
        violations += check_words(path.relative_to(ROOT).as_posix(), path.read_text())
    for file, line, reason in violations:
        print(f"{file}:{line}: {reason}")
    print(f"{len(files)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
