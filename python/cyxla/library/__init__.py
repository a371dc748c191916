# SPDX-License-Identifier: Apache-2.0
"""Builds C libraries from programs."""

from cyxla.library.build import Library, build_library
from cyxla.library.interface import LibraryFunction

__all__ = ["Library", "LibraryFunction", "build_library"]
