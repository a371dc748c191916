# SPDX-License-Identifier: Apache-2.0
"""Compiles JAX functions with PJRT plugins, and runs them from native code without the GIL.

`lower` turns a function into a program, `compile_program` the program into an `Executable`, whose
`run` takes and returns NumPy arrays. Native modules call it through `cyxla/cyxla.h` or the `.pxd`
files; `get_include` returns their folders.

Importing cyxla imports nothing else; each name is loaded on first use. So modules can be built
against cyxla without JAX and without a plugin.
"""

import importlib

# The public names by module; `__init__.pyi` repeats them for type checkers.
_NAMES_OF_MODULES = {
    "_runtime": (
        "BoundCall",
        "Executable",
    ),
    "abi": (
        "check_abi",
        "get_include",
    ),
    "compilation.batch": ("compile_programs",),
    "compilation.compile": ("compile_program",),
    "compilation.statistics": ("CompileStatistics",),
    "dtypes": (
        "ArrayType",
        "ElementType",
    ),
    "errors": (
        "AbiError",
        "ArgumentError",
        "CompileError",
        "Error",
        "ExecutionError",
        "ForkError",
        "LargeConstantsWarning",
        "LibraryError",
        "LoweringError",
        "NarrowingWarning",
        "PluginError",
        "ShutdownError",
        "UnsupportedError",
    ),
    "ffi.targets": ("register_ffi_target",),
    "library.build": ("Library", "build_library"),
    "library.interface": ("LibraryFunction",),
    "lowering.lower": (
        "LARGE_CONSTANTS_BYTES",
        "lower",
    ),
    "memory": ("aligned_empty",),
    "plugins.discovery": ("available_plugins", "find_plugin", "rejected_plugins"),
    "plugins.options": ("OptionValue",),
    "plugins.plugin": (
        "PLATFORM_ENVIRONMENT_VARIABLE",
        "PLATFORM_PREFERENCE",
        "PLUGIN_ENVIRONMENT_VARIABLE",
        "Plugin",
        "PluginModule",
        "RejectedPlugin",
    ),
    "program.program": ("Program",),
    "program.signature": ("ProgramArray",),
    "runtime": (
        "ErrorInfo",
        "RuntimeInfo",
        "error_info",
        "initialize",
        "is_initialized",
        "runtime_info",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES_OF_MODULES.items() for name in names}

__all__ = sorted([*_MODULE_OF, "__version__"])  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = importlib.import_module(f"{__name__}.abi").package_version()
    elif name in _MODULE_OF:
        value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
