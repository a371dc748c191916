# SPDX-License-Identifier: Apache-2.0
"""Builds C libraries from programs."""

from cyxla.library.build import Library, LibraryFunction, build_library

__all__ = ["Library", "LibraryFunction", "build_library"]
