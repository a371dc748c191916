# SPDX-License-Identifier: Apache-2.0
"""Lowered functions, the files that store them, and the Python functions that they call."""

from cyxla.program.program import Program
from cyxla.program.signature import ProgramArray

__all__ = ["Program", "ProgramArray"]
