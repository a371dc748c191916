# SPDX-License-Identifier: Apache-2.0
"""The exceptions and warnings of cyxla.

Every error that cyxla raises on purpose is an `Error`. A message says what failed, where, for which
value, and what to do next. Errors of the C++ core reach Python as these classes too.
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
    "LoweringError",
    "NarrowingWarning",
    "PluginError",
    "ShutdownError",
    "UnsupportedError",
]


def refuse_reload(module: str, has_run: bool) -> None:
    """Keep a module that the whole process depends on from being executed a second time.

    Its state would start anew while the plugin, the extension module and existing objects still
    refer to the old one.

    Raises:
        ImportError: it `has_run` before; nothing has changed.
    """
    if has_run:
        raise ImportError(
            f"{module} cannot be reloaded: it holds state of this process, such as the loaded"
            " plugin; start a new process (restart the kernel in Jupyter) to use changed code",
            name=module,
        )


def counted(count: int, noun: str) -> str:
    """A number and what it counts, for messages: "1 array", "2 arrays"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


refuse_reload(__name__, "Error" in globals())


class Error(RuntimeError):
    """Base class of all errors of cyxla."""


class PluginError(Error):
    """No usable plugin: a missing, foreign or too old library, a wrong option or platform."""


class LoweringError(Error):
    """A function that cannot be lowered to a program that cyxla can promise to run."""


class CompileError(Error):
    """A program that the plugin cannot compile."""


class ExecutionError(Error):
    """An execution that the plugin reported as failed; what a callback raised is its cause."""


class ArgumentError(Error, ValueError):
    """Wrong arrays or arguments: their number, dtype, shape or value."""


class AbiError(Error, ImportError):
    """An extension module compiled against other declarations than the installed cyxla has."""


class UnsupportedError(Error):
    """Something that cyxla, or the loaded plugin, cannot do."""


class ShutdownError(Error):
    """A call after the runtime was shut down."""


class ForkError(Error):
    """A call in a forked child of the process that initialized the runtime."""


class LargeConstantsWarning(UserWarning):
    """Arrays of a lowered function became large constants of the program."""


class NarrowingWarning(UserWarning):
    """`run` narrowed a 64-bit array to the declared type, so numbers may have changed."""
