# SPDX-License-Identifier: Apache-2.0
"""Compiles programs to executables: options, the cache of compiled programs, statistics."""

from cyxla.compilation.batch import compile_programs
from cyxla.compilation.compile import compile_program
from cyxla.compilation.statistics import CompileStatistics

__all__ = ["CompileStatistics", "compile_program", "compile_programs"]
