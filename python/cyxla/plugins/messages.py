# SPDX-License-Identifier: Apache-2.0
"""Recognizes errors by the plugin's wording, where PJRT's error code is not specific enough.

Nothing else in cyxla parses a plugin's messages. The words are from the versions below. Other
messages are passed on unchanged: without advice, and without another try of the compilation.

| words                                      | from                                     |
|--------------------------------------------|------------------------------------------|
| `Failed to parse`, `bytecode`, `vhlo`      | XLA in PJRT 0.81, 0.106 and 0.115        |
| `unregistered operation`                   | the same                                 |
| `No such compile option: 'name'`           | the same                                 |
| the name of a create option                | the same; 0.81 and 0.106 accept any name |
| the name of a custom call                  | the same                                 |
| `CUDA_ERROR`, `cuInit`, `No visible GPU`   | jax-cuda12-pjrt, jax-cuda13-pjrt 0.12    |
| `no ROCm-capable device`                   | jax-rocm7-pjrt 0.12                      |
| `No jellyfish device`, `TPU initialization`| libtpu 0.0.47                            |
| `cannot open shared object file`           | the GNU C library's dynamic loader       |
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = [
    "has_no_gpu",
    "has_no_tpu",
    "is_unreadable",
    "missing_library",
    "named_in",
    "unknown_compile_options",
]

_UNREADABLE: Final = ("Failed to parse", "unregistered operation", "vhlo", "bytecode")
_NO_GPU: Final = ("No visible GPU devices", "CUDA_ERROR", "cuInit", "no ROCm-capable device")
_NO_TPU: Final = ("No jellyfish device", "TPU initialization failed")
_MISSING_LIBRARY: Final = re.compile(r"([\w.+-]+\.so[\w.]*): cannot open shared object file")


def is_unreadable(error: Exception) -> bool:
    """Return whether the plugin could not parse a program; another form of it may parse."""
    return any(words in str(error) for words in _UNREADABLE)


def unknown_compile_options(error: Exception, names: Iterable[str]) -> set[str]:
    """Return the compile options that the plugin reports as unknown."""
    return {name for name in names if f"No such compile option: '{name}'" in str(error)}


def named_in(error: Exception, names: Iterable[str]) -> list[str]:
    """Return the names, of create options or custom calls, that the plugin's message contains."""
    return [name for name in names if name in str(error)]


def missing_library(message: str) -> str | None:
    """Return the library that the dynamic loader did not find, None if there is none."""
    found = _MISSING_LIBRARY.search(message)
    return None if found is None else found[1]


def has_no_gpu(message: str) -> bool:
    """Return whether a GPU plugin found no GPU."""
    return any(words in message for words in _NO_GPU)


def has_no_tpu(message: str) -> bool:
    """Return whether libtpu found no TPU."""
    return any(words in message for words in _NO_TPU)
