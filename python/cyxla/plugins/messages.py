# SPDX-License-Identifier: Apache-2.0
"""What plugins write in their errors, where PJRT has no code that tells cases apart.

Nothing else in cyxla reads a plugin's prose. The words are those of these versions; a plugin with
other words has its message passed on as it is, without advice, and no second form is tried.

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
    """Whether the plugin could not parse a program; it may be able to parse another form of it."""
    return any(words in str(error) for words in _UNREADABLE)


def unknown_compile_options(error: Exception, names: Iterable[str]) -> set[str]:
    """Those of the compile options that the plugin does not know."""
    return {name for name in names if f"No such compile option: '{name}'" in str(error)}


def named_in(error: Exception, names: Iterable[str]) -> list[str]:
    """Those of the names, of create options or custom calls, that the plugin complains about."""
    return [name for name in names if name in str(error)]


def missing_library(message: str) -> str | None:
    """The library that the dynamic loader did not find, None when it found all."""
    found = _MISSING_LIBRARY.search(message)
    return None if found is None else found[1]


def has_no_gpu(message: str) -> bool:
    """Whether a plugin for GPUs found none."""
    return any(words in message for words in _NO_GPU)


def has_no_tpu(message: str) -> bool:
    """Whether libtpu found no TPU."""
    return any(words in message for words in _NO_TPU)
