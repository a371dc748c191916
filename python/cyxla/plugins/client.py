# SPDX-License-Identifier: Apache-2.0
"""Makes a plugin's client, and records the environment variables that XLA reads meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from typing import TypeAlias, TypeVar

from cyxla.errors import PluginError, refuse_reload
from cyxla.plugins.messages import named_in
from cyxla.plugins.options import OptionValue
from cyxla.plugins.plugin import Plugin
from cyxla.plugins.thread_cap import POOL_SIZE_VARIABLES
from cyxla.plugins.xla_flags import VARIABLE

__all__ = ["client_code", "make_client", "variables_at_load", "variables_now"]

refuse_reload(__name__, "_variables_at_load" in globals())

Loaded = TypeVar("Loaded")
Variables: TypeAlias = tuple[tuple[str, str | None], ...]

_variables_at_load: list[Variables] = []


def variables_now() -> Variables:
    """Return the environment variables that affect how XLA compiles."""
    return tuple((name, os.environ.get(name)) for name in (VARIABLE, *POOL_SIZE_VARIABLES))


def variables_at_load() -> tuple[Variables, ...]:
    """Return these variables at each attempt to load a plugin, in order.

    XLA reads some at the first attempt only and the others at every attempt, but none later.
    """
    return tuple(_variables_at_load)


def make_client(
    load: Callable[[str, Mapping[str, OptionValue], int | None], Loaded],
    path: str,
    options: Mapping[str, OptionValue],
    optional: Set[str] = frozenset(),
    threads: int | None = None,
) -> tuple[Loaded, dict[str, OptionValue]]:
    """Make a plugin's client with `load`; return its result and the options that it was given.

    Options in `optional` are dropped if the plugin refuses them.

    Raises:
        PluginError: the plugin cannot be loaded or cannot make a client. Callers may try again.
    """
    given = dict(options)
    while True:
        _variables_at_load.append(variables_now())
        try:
            return load(path, given, threads), given
        except PluginError as error:
            refused = named_in(error, optional & given.keys())
            if not refused:
                raise
            del given[refused[0]]


def client_code(
    plugin: Plugin, options: Mapping[str, OptionValue], optional: Set[str] = frozenset()
) -> str:
    """Return the Python code that makes a plugin's client in another process."""
    return f"""
import ctypes
preloaded = [ctypes.CDLL(path) for path in {[str(path) for path in plugin.preload]}]
from cyxla import _runtime
from cyxla.plugins.client import make_client
make_client(_runtime.load_runtime, {str(plugin.path)!r}, {dict(options)}, {set(optional)})
"""
