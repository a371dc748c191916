# SPDX-License-Identifier: Apache-2.0
from cyxla._runtime import BoundCall as BoundCall, Executable as Executable
from cyxla.abi import check_abi as check_abi, get_include as get_include
from cyxla.compilation.batch import compile_programs as compile_programs
from cyxla.compilation.compile import compile_program as compile_program
from cyxla.compilation.statistics import CompileStatistics as CompileStatistics
from cyxla.dtypes import ArrayType as ArrayType, ElementType as ElementType
from cyxla.errors import (
    AbiError as AbiError,
    ArgumentError as ArgumentError,
    CompileError as CompileError,
    Error as Error,
    ExecutionError as ExecutionError,
    ForkError as ForkError,
    LargeConstantsWarning as LargeConstantsWarning,
    LibraryError as LibraryError,
    LoweringError as LoweringError,
    NarrowingWarning as NarrowingWarning,
    PluginError as PluginError,
    ShutdownError as ShutdownError,
    UnsupportedError as UnsupportedError,
)
from cyxla.ffi.targets import register_ffi_target as register_ffi_target
from cyxla.library.build import Library as Library, build_library as build_library
from cyxla.library.interface import LibraryFunction as LibraryFunction
from cyxla.lowering.lower import LARGE_CONSTANTS_BYTES as LARGE_CONSTANTS_BYTES, lower as lower
from cyxla.memory import aligned_empty as aligned_empty
from cyxla.plugins.discovery import (
    available_plugins as available_plugins,
    find_plugin as find_plugin,
    rejected_plugins as rejected_plugins,
)
from cyxla.plugins.options import OptionValue as OptionValue
from cyxla.plugins.plugin import (
    PLATFORM_ENVIRONMENT_VARIABLE as PLATFORM_ENVIRONMENT_VARIABLE,
    PLATFORM_PREFERENCE as PLATFORM_PREFERENCE,
    PLUGIN_ENVIRONMENT_VARIABLE as PLUGIN_ENVIRONMENT_VARIABLE,
    Plugin as Plugin,
    PluginModule as PluginModule,
    RejectedPlugin as RejectedPlugin,
)
from cyxla.program.program import Program as Program
from cyxla.program.signature import ProgramArray as ProgramArray
from cyxla.runtime import (
    ErrorInfo as ErrorInfo,
    RuntimeInfo as RuntimeInfo,
    error_info as error_info,
    initialize as initialize,
    is_initialized as is_initialized,
    runtime_info as runtime_info,
)

__version__: str
