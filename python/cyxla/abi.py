# SPDX-License-Identifier: Apache-2.0
"""What modules built against cyxla need: the include folders, and the check of the ABI version."""

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
    """Return the two folders that a module built against cyxla needs.

    The first is for the C compiler: it has the PJRT header and cyxla's own. The second is for
    Cython's `-I`: the `.pxd` files are in its folder `cyxla`.

    Raises:
        Error: cyxla is not installed, so that its headers are not in its package.
    """
    return [str(_include_folder()), str(Path(__file__).parent.parent)]


def check_abi(version: int) -> None:
    """Refuse a module that was compiled against other declarations than this cyxla has.

    Such a module calls it while it is imported, with the `ABI_VERSION` that it was compiled with:
    a struct that has changed is not noticed otherwise. No plugin is loaded.

    Raises:
        AbiError: the versions differ, or the argument is not a version. It is an ImportError.
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
    """Return the version of the installed cyxla, "0+unknown" in a tree that is not installed."""
    from importlib import metadata

    try:
        return metadata.version("cyxla")
    except metadata.PackageNotFoundError:
        return "0+unknown"


@functools.cache
def abi_version() -> int:
    """Return the ABI version in the installed header, which the extension was compiled with too.

    Raises:
        Error: there is no such header.
    """
    header = _include_folder() / _HEADER
    found = _VERSION.search(header.read_text(encoding="utf-8"))
    if found is None:
        raise Error(f"no CYXLA_ABI_VERSION in {header}; reinstall cyxla")
    return int(found[1])


def _include_folder() -> Path:
    # An editable installation has its compiled and its copied files in another folder than this.
    folders = [Path(folder, "include") for folder in sys.modules["cyxla"].__path__]
    for folder in folders:
        if (folder / _HEADER).is_file():
            return folder
    raise Error(
        f"no {_HEADER} in {', '.join(map(str, folders))}: install cyxla with pip; a source tree "
        "has its headers elsewhere"
    )
