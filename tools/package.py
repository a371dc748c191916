# SPDX-License-Identifier: Apache-2.0
"""Builds cyxla's wheel and installs it into an environment of build/.

    python3 tools/package.py demo    # this interpreter's environment, ready for the task 'demo'

The wheel is built again only when a file it is made of has changed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from environment import environment_folder, make_environment, pip_variables
from steps import BUILD, ROOT, StepError, digest, is_done, mark_done, run, say, step

# Everything that ends in the wheel or takes part in building it.
_FOLDERS = ("cmake", "include", "python", "src")
_FILES = ("CMakeLists.txt", "LICENSE", "NOTICE", "README.md", "pyproject.toml")


def sources_digest() -> str:
    """Return a hash of all files the wheel is made of."""
    files = [ROOT / name for name in _FILES]
    for folder in _FOLDERS:
        files += sorted(
            path
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
    return digest(files)


def build_wheel(version: str, python: Path, source: Path) -> Path:
    """Build a wheel with the packages of `python`'s environment from a folder or an sdist."""
    folder = BUILD / "dist" / version
    shutil.rmtree(folder, ignore_errors=True)
    command: list[str | Path] = [
        python,
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "-w",
        folder,
    ]
    run([*command, "--verbose", source], env=pip_variables())
    return next(folder.glob("cyxla-*.whl"))


def build_sdist(python: Path) -> Path:
    """Build the source distribution with the packages of `python`'s environment."""
    folder = BUILD / "dist" / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    run([python, "-m", "build", "--no-isolation", "--sdist", "--outdir", folder, ROOT])
    return next(folder.glob("cyxla-*.tar.gz"))


def install_wheel(version: str, python: Path, *, from_sdist: bool = False) -> None:
    """Build cyxla for `python` and install it into its environment, unless that is done already.

    With from_sdist the wheel is built from an sdist, which shows that the sdist is complete.
    """
    stamps = environment_folder(version) / "cyxla-stamps"
    sources = sources_digest()
    wanted = [stamps / "wheel", *([stamps / "sdist"] if from_sdist else [])]
    if all(is_done(stamp, sources) for stamp in wanted):
        say(f"==> cyxla in {stamps.parent.relative_to(ROOT)} is up to date")
        return
    origin = "sdist" if from_sdist else "tree"
    with step(f"building and installing cyxla's wheel for Python {version} from the {origin}"):
        wheel = build_wheel(version, python, build_sdist(python) if from_sdist else ROOT)
        pip: list[str | Path] = [python, "-m", "pip"]
        run([*pip, "install", "--force-reinstall", "--no-deps", wheel], env=pip_variables())
        run([*pip, "check"])
        for stamp in wanted:
            mark_done(stamp, sources)


def main() -> int:
    """Make the running interpreter's environment for the task named, and install cyxla into it."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        python = make_environment(version, Path(sys.executable), sys.argv[1])
        install_wheel(version, python)
    except StepError as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
