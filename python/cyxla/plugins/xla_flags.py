# SPDX-License-Identifier: Apache-2.0
"""Checks XLA_FLAGS in a child process: XLA aborts on a flag or a value that it does not know.

The plugin's XLA and JAX's are checked separately, because their versions know different flags.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Final

from cyxla.errors import LoweringError, PluginError

__all__ = ["VARIABLE", "check_for_jax", "check_for_plugin", "names_a_file"]

VARIABLE: Final = "XLA_FLAGS"

# Ignores Python exceptions; they are reported where the plugin is used.
_CHILD = """
import os, sys
sys.path[:] = {path!r}
os.write(1, b"started ")
try:
{body}
except BaseException:
    pass
os.write(1, b"alive")
os._exit(0)
"""
_READ_BY_JAX = "from jaxlib import xla_client\nxla_client.CompileOptions()"
_SECONDS = 60
_LOG_PREFIX = re.compile(r"[A-Z]\d{4} \S+ +\d+ [^\]]*\] ")

_readable_by_jax: set[str] = set()


def check_for_plugin(described: str, load: str) -> None:
    """Raise PluginError if the plugin would abort on XLA_FLAGS.

    If the variable is set, this runs a child process that makes a client.

    Args:
        described: the plugin, for the message.
        load: Python code that makes a client of the plugin.
    """
    complaint = _complaint(load)
    if complaint is not None:
        raise PluginError(
            f"{described} cannot be used: it would end this process over the environment variable "
            f"{VARIABLE}={os.environ[VARIABLE]!r}: {complaint}. {_ADVICE}"
        )


def check_for_jax() -> None:
    """Raise LoweringError if JAX's own XLA would abort on XLA_FLAGS.

    Skips the check if JAX has already read the variable.
    """
    value = os.environ.get(VARIABLE, "")
    bridge = sys.modules.get("jax._src.xla_bridge")
    if value in _readable_by_jax or (bridge and bridge.backends_are_initialized()):
        return
    complaint = _complaint(_READ_BY_JAX)
    if complaint is not None:
        raise LoweringError(
            f"JAX would end this process over the environment variable {VARIABLE}={value!r}: "
            f"{complaint}. {_ADVICE}"
        )
    _readable_by_jax.add(value)


def names_a_file(value: str) -> bool:
    """Return whether XLA reads this value of XLA_FLAGS as the name of a file with flags."""
    return bool(value) and not value.lstrip(" \t\r\n").startswith("-")


_ADVICE = (
    "Unset it, or take the flag out; options of one program go to compile_program(program, "
    "options={...})"
)


def _complaint(body: str) -> str | None:
    """Return XLA's message if it aborts a child process that runs the code, else None."""
    if not os.environ.get(VARIABLE, "").strip() or not _is_python(sys.executable):
        return None
    code = _CHILD.format(path=sys.path, body=textwrap.indent(body, "    "))
    try:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if ended.stdout != b"started ":
        return None
    lines = ended.stderr.decode("utf-8", "replace").splitlines()
    said = [line for line in lines if _LOG_PREFIX.match(line)] or lines
    return _LOG_PREFIX.sub("", said[0]).rstrip(".") if said else "it ends without a message"


def _is_python(program: str | None) -> bool:
    """Return whether the program is an interpreter; another one would start its application."""
    return bool(program) and Path(str(program)).name.lower().startswith("python")
