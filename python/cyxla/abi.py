# SPDX-License-Identifier: Apache-2.0
"""The include folders and the ABI check for modules that are built against cyxla."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

from cyxla.errors import AbiError, Error

__all__ = ["abi_version", "check_abi", "get_include", "package_version"]

_HEADER = Path("cyxla", "cyxla.h")
_VERSION = re.compile(r"^#define CYXLA_ABI_VERSION (\d+)$", re.MULTILINE)


def get_include() -> list[str]:
    """Return the include folders for building a module against cyxla.

    The first is for the C compiler: it has PJRT's and cyxla's headers. The second is for Cython's
    `-I`: the `.pxd` files are in its folder `cyxla`.

    Raises:
        Error: cyxla is not installed, so its package has no headers.
    """
    return [str(_include_folder()), str(Path(__file__).parent.parent)]


def check_abi(version: int) -> None:
    """Raise AbiError if a module was compiled against another ABI version than this cyxla's.

    A module that cimports cyxla calls this on import, with the `ABI_VERSION` that it was compiled
    with; otherwise changed structs go unnoticed. Loads no plugin. AbiError is an ImportError.
    """
    try:
        own = abi_version()
    except Error as error:
        raise AbiError(f"the ABI version of cyxla cannot be determined: {error}") from error
    if not isinstance(version, int) or isinstance(version, bool):
        raise AbiError(
            f"check_abi takes the ABI_VERSION that a module was compiled with, an int, not "
            f"{version!r} ({type(version).__name__})"
        )
    if version != own:
        raise AbiError(
            f"the module was compiled against ABI version {version} of cyxla, the installed cyxla "
            f"has {own}: rebuild the module against the installed cyxla, or install the cyxla that "
            "it was built for"
        )


def package_version() -> str:
    """Return the version of the installed cyxla, "0+unknown" in a source tree."""
    from importlib import metadata

    try:
        return metadata.version("cyxla")
    except metadata.PackageNotFoundError:
        return "0+unknown"


@functools.cache
def abi_version() -> int:
    """Return the ABI version in the installed header, which the extension module was built with.

    Raises:
        Error: the header is missing or has no version.
    """
    header = _include_folder() / _HEADER
    found = _VERSION.search(header.read_text(encoding="utf-8"))
    if found is None:
        raise Error(f"no CYXLA_ABI_VERSION in {header}; reinstall cyxla")
    return int(found[1])


def _include_folder() -> Path:
    # An editable installation has its compiled and copied files in another folder.
    folders = [Path(folder, "include") for folder in sys.modules["cyxla"].__path__]
    for folder in folders:
        if (folder / _HEADER).is_file():
            return folder
    raise Error(
        f"no {_HEADER} in {', '.join(map(str, folders))}: install cyxla with pip; a source tree "
        "has its headers elsewhere"
    )
