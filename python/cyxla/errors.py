# SPDX-License-Identifier: Apache-2.0
"""The exceptions and warnings of cyxla.

Every error that cyxla raises on purpose is an `Error`, including those of the C++ core. A message
says what failed, where, with which value, and what to do next.
"""

from __future__ import annotations

__all__ = [
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
]


def refuse_reload(module: str, has_run: bool) -> None:
    """Raise ImportError if a module with process-wide state is executed a second time.

    The plugin, the extension module and existing objects would still refer to the old state.
    """
    if has_run:
        raise ImportError(
            f"{module} cannot be reloaded: it holds state of this process, such as the loaded"
            " plugin; start a new process (restart the kernel in Jupyter) to use changed code",
            name=module,
        )


def counted(count: int, noun: str) -> str:
    """Return a count and its noun, for messages: "1 array", "2 arrays"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


refuse_reload(__name__, "Error" in globals())


class Error(RuntimeError):
    """Base class of all errors of cyxla."""


class PluginError(Error):
    """No usable plugin: a missing, invalid or too old library, or an invalid option or platform."""


class LoweringError(Error):
    """A function that cannot be lowered to a program."""


class CompileError(Error):
    """A program that the plugin cannot compile."""


class ExecutionError(Error):
    """An execution that the plugin reported as failed; a host callback's exception is its cause."""


class ArgumentError(Error, ValueError):
    """Invalid arrays or arguments: their number, dtype, shape or value."""


class AbiError(Error, ImportError):
    """An extension module compiled against another ABI version than the installed cyxla's."""


class UnsupportedError(Error):
    """A feature that cyxla or the loaded plugin does not support."""


class LibraryError(Error):
    """A program that cannot be built into a library; the message has the reason."""


class ShutdownError(Error):
    """A call after the runtime shut down."""


class ForkError(Error):
    """A call in a forked child of the process that initialized the runtime."""


class LargeConstantsWarning(UserWarning):
    """Arrays of a lowered function became large constants of the program."""


class NarrowingWarning(UserWarning):
    """`run` narrowed a 64-bit array to the declared type, so numbers may have changed."""
