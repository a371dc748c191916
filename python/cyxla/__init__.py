# SPDX-License-Identifier: Apache-2.0
"""Compiles JAX functions with a PJRT plugin, and runs them from native code without the GIL.

`lower` turns a function into a program, `compile_program` the program into an `Executable`, whose
`run` takes and returns NumPy arrays. Native modules call it through `cyxla/cyxla.h` or the `.pxd`
files; `get_include` tells where they are.

Importing cyxla imports nothing else: each name is loaded when it is first used, so that a module
can be built against cyxla where neither JAX nor a plugin is installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyxla._runtime import BoundCall, Executable
    from cyxla.abi import check_abi, get_include
    from cyxla.batch import compile_programs
    from cyxla.compilation import compile_program
    from cyxla.compiled_pair import CompileStatistics
    from cyxla.dtypes import ArrayType, ElementType
    from cyxla.errors import (
        AbiError,
        ArgumentError,
        CompileError,
        Error,
        ExecutionError,
        ForkError,
        LargeConstantsWarning,
        LoweringError,
        NarrowingWarning,
        PluginError,
        ShutdownError,
        UnsupportedError,
    )
    from cyxla.ffi import register_ffi_target
    from cyxla.lowering import LARGE_CONSTANTS_BYTES, lower
    from cyxla.memory import aligned_empty
    from cyxla.plugins import (
        PLATFORM_ENVIRONMENT_VARIABLE,
        PLATFORM_PREFERENCE,
        PLUGIN_ENVIRONMENT_VARIABLE,
        OptionValue,
        Plugin,
        PluginModule,
        RejectedPlugin,
        available_plugins,
        find_plugin,
        rejected_plugins,
    )
    from cyxla.program import Program, ProgramArray
    from cyxla.runtime import (
        ErrorInfo,
        RuntimeInfo,
        error_info,
        initialize,
        is_initialized,
        runtime_info,
    )

    __version__: str

__all__ = [
    "LARGE_CONSTANTS_BYTES",
    "PLATFORM_ENVIRONMENT_VARIABLE",
    "PLATFORM_PREFERENCE",
    "PLUGIN_ENVIRONMENT_VARIABLE",
    "AbiError",
    "ArgumentError",
    "ArrayType",
    "BoundCall",
    "CompileError",
    "CompileStatistics",
    "ElementType",
    "Error",
    "ErrorInfo",
    "Executable",
    "ExecutionError",
    "ForkError",
    "LargeConstantsWarning",
    "LoweringError",
    "NarrowingWarning",
    "OptionValue",
    "Plugin",
    "PluginError",
    "PluginModule",
    "Program",
    "ProgramArray",
    "RejectedPlugin",
    "RuntimeInfo",
    "ShutdownError",
    "UnsupportedError",
    "__version__",
    "aligned_empty",
    "available_plugins",
    "check_abi",
    "compile_program",
    "compile_programs",
    "error_info",
    "find_plugin",
    "get_include",
    "initialize",
    "is_initialized",
    "lower",
    "register_ffi_target",
    "rejected_plugins",
    "runtime_info",
]

_MODULES = {
    "_runtime": ("BoundCall", "Executable"),
    "abi": ("check_abi", "get_include"),
    "batch": ("compile_programs",),
    "compilation": ("compile_program",),
    "compiled_pair": ("CompileStatistics",),
    "dtypes": ("ArrayType", "ElementType"),
    "errors": (
        "AbiError",
        "ArgumentError",
        "CompileError",
        "Error",
        "ExecutionError",
        "ForkError",
        "LargeConstantsWarning",
        "LoweringError",
        "NarrowingWarning",
        "PluginError",
        "ShutdownError",
        "UnsupportedError",
    ),
    "ffi": ("register_ffi_target",),
    "lowering": ("LARGE_CONSTANTS_BYTES", "lower"),
    "memory": ("aligned_empty",),
    "plugins": (
        "PLATFORM_ENVIRONMENT_VARIABLE",
        "PLATFORM_PREFERENCE",
        "PLUGIN_ENVIRONMENT_VARIABLE",
        "OptionValue",
        "Plugin",
        "PluginModule",
        "RejectedPlugin",
        "available_plugins",
        "find_plugin",
        "rejected_plugins",
    ),
    "program": ("Program", "ProgramArray"),
    "runtime": (
        "ErrorInfo",
        "RuntimeInfo",
        "error_info",
        "initialize",
        "is_initialized",
        "runtime_info",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # which would take any name for granted

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            value = _version()
        elif name in _MODULE_OF:
            value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version(__name__)
    except metadata.PackageNotFoundError:
        return "0+unknown"  # a source tree that is not installed
