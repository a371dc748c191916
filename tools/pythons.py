# SPDX-License-Identifier: Apache-2.0
"""Finds the interpreters the tests run on.

They come from CYXLA_TEST_PYTHONS (paths or commands, separated by ':' or ','), then from PATH, then
from pyenv's versions. An interpreter that lacks its headers or the modules that make a virtual
environment is passed over.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VERSIONS = ("3.11", "3.12", "3.13")

_PROBE = """
import sys, sysconfig, pathlib
import venv, ensurepip
header = pathlib.Path(sysconfig.get_path("include"), "Python.h")
assert header.is_file(), f"{header} is missing"
print(sys.version_info[0], sys.version_info[1], sys.executable, sep="|")
"""


class Search(NamedTuple):
    """Interpreters by version, and a line for each candidate that was passed over."""

    found: dict[str, Path]
    rejected: list[str]


def _probe(candidate: Path) -> tuple[str, Path]:
    result = subprocess.run(
        [str(candidate), "-I", "-c", _PROBE],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if result.returncode != 0:
        reason = (result.stderr.strip() or f"exit status {result.returncode}").splitlines()[-1]
        raise OSError(reason)
    major, minor, executable = result.stdout.strip().splitlines()[-1].split("|")
    return f"{major}.{minor}", Path(executable)


def _pyenv_roots() -> list[Path]:
    # HOME may have been emptied; the passwd entry still tells where pyenv was installed.
    homes = [Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)]
    roots = [Path(os.environ["PYENV_ROOT"])] if os.environ.get("PYENV_ROOT") else []
    roots += [home / ".pyenv" for home in homes] + [Path("/opt/pyenv")]
    return list(dict.fromkeys(root for root in roots if (root / "versions").is_dir()))


def _newest_first(folder: Path) -> tuple[int, ...]:
    return tuple(-int(number) for number in re.findall(r"\d+", folder.name))


def _candidates() -> Iterator[Path]:
    for word in re.split("[:,]", os.environ.get("CYXLA_TEST_PYTHONS", "")):
        if word.strip():
            yield Path(shutil.which(word.strip()) or word.strip())
    for name in (*(f"python{version}" for version in VERSIONS), "python3"):
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            if os.access(Path(folder) / name, os.X_OK):
                yield Path(folder) / name
    for root in _pyenv_roots():
        for version in VERSIONS:
            versions = (root / "versions").glob(f"{version}.*")
            for installed in sorted(versions, key=_newest_first):
                yield installed / "bin" / f"python{version}"


def find_pythons() -> Search:
    """Return the first usable interpreter of each of VERSIONS."""
    found: dict[str, Path] = {}
    rejected = []
    for candidate in dict.fromkeys(_candidates()):
        if len(found) == len(VERSIONS):
            break
        named = re.fullmatch(r"python(3\.\d+)", candidate.name)
        if named and named[1] in found:
            continue
        try:
            version, executable = _probe(candidate)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            rejected.append(f"{candidate}: {error}")
            continue
        if version in VERSIONS:
            found.setdefault(version, executable)
    return Search({version: found[version] for version in VERSIONS if version in found}, rejected)


if __name__ == "__main__":
    search = find_pythons()
    for line in search.rejected:
        print(f"passed over {line}")
    for version in VERSIONS:
        print(f"{version}: {search.found.get(version, 'not found')}")
