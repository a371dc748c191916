# SPDX-License-Identifier: Apache-2.0
"""Registers XLA FFI handlers: native functions that programs call by name, as custom calls."""

from cyxla.ffi.targets import register_ffi_target

__all__ = ["register_ffi_target"]
