# SPDX-License-Identifier: Apache-2.0
"""Makes the virtual environments build/venv-<version> and installs what a task needs into them.

Requirements are read from pyproject.toml: the build requirements, the dependencies, then extras and
dependency groups by name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

from steps import BUILD, ROOT, digest, is_done, mark_done, run, say, step

TASKS = {"demo": ["cpu", "demo"], "test": ["cpu", "test"], "check": ["cpu", "test", "check"]}


def environment_folder(version: str) -> Path:
    """Return the folder of the environment of a Python version such as '3.12'."""
    return BUILD / f"venv-{version}"


def requirements(groups: list[str]) -> list[str]:
    """Return what pyproject.toml lists for building, for running, and for these groups."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = settings["project"]["optional-dependencies"] | settings["dependency-groups"]
    wanted = settings["build-system"]["requires"] + settings["project"]["dependencies"]
    for group in groups:
        wanted += listed[group]
    return list(dict.fromkeys(wanted))


def pip_variables() -> dict[str, str]:
    """Return the variables pip runs under: a cache in build/ where HOME is read-only."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    existing = next(path for path in (cache, *cache.parents) if path.exists())
    variables = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    if "PIP_CACHE_DIR" not in os.environ and not os.access(existing, os.W_OK):
        variables["PIP_CACHE_DIR"] = str(BUILD / "pip-cache")
    return variables


def _has_pip(python: Path) -> bool:
    if not python.exists():
        return False
    command = [str(python), "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def make_bare_environment(name: str, interpreter: Path) -> Path:
    """Make the environment build/venv-<name>, with pip alone in it, unless it is there already.

    Returns its interpreter. Raises StepError when it cannot be made.
    """
    folder = environment_folder(name)
    python = folder / "bin" / "python"
    if not _has_pip(python):
        with step(f"making {folder.relative_to(ROOT)} with {interpreter}"):
            shutil.rmtree(folder, ignore_errors=True)
            run([interpreter, "-m", "venv", folder], timeout=300)
            run([python, "-m", "pip", "install", "--upgrade", "pip>=25"], env=pip_variables())
    return python


def make_environment(version: str, interpreter: Path, task: str) -> Path:
    """Make or complete the environment of a version for one of TASKS; return its interpreter.

    Raises StepError when the environment cannot be made or a requirement cannot be installed.
    """
    folder = environment_folder(version)
    python = make_bare_environment(version, interpreter)
    wanted = requirements(TASKS[task])
    stamp = folder / "cyxla-stamps" / task
    if not is_done(stamp, digest(wanted)):
        with step(f"installing what '{task}' needs into {folder.relative_to(ROOT)}"):
            say("    the first time this downloads up to 600 MB, kept in pip's cache")
            run([python, "-m", "pip", "install", *wanted], env=pip_variables())
            mark_done(stamp, digest(wanted))
    return python
