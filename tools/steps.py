# SPDX-License-Identifier: Apache-2.0
"""What the other tools share: announced and timed steps, and the project's folders."""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


class StepError(Exception):
    """A command that failed: the reason, and the lines it printed."""

    def __init__(self, reason: str, lines: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.lines = list(lines)


# The commands that run now, and whether others may still start: Ctrl-C reaches one thread alone.
_running: set[subprocess.Popen[str]] = set()
_is_interrupted = threading.Event()
# Before each line of a part that runs beside others; every thread has its own.
PREFIX = contextvars.ContextVar("PREFIX", default="")


def say(text: str) -> None:
    """Print a line at once, so that it stays in order with the output of commands."""
    sys.stdout.write(f"{PREFIX.get()}{text}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Announce a step, and print how long it took however it ends."""
    say(f"==> {title}")
    start = time.monotonic()
    outcome = "failed"
    try:
        yield
        outcome = "done"
    finally:
        say(f"    {outcome} in {time.monotonic() - start:.1f} s: {title}")


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = 1800,
) -> list[str]:
    """Run a command, showing its output as it comes, and return the output's lines.

    Raises StepError when the command cannot be started, exits with another status than 0, or takes
    longer than `timeout` seconds (it is killed then).
    """
    if _is_interrupted.is_set():
        raise StepError("interrupted")
    words = [str(word) for word in command]
    environment = {**os.environ, **(env or {})}
    # A foreign PYTHONPATH would let the tests import something else than what was installed.
    for name in ("PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    say("    $ " + " ".join(words))
    # timeout(1) ends the command's children too, and works while we wait for output.
    process = subprocess.Popen(
        ["timeout", "--kill-after=10", str(timeout), *words],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    _running.add(process)
    lines = []
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            say(lines[-1])
        status = process.wait()
    except BaseException:
        # Ctrl-C reaches us alone: timeout(1) keeps its command in a process group of its own.
        process.terminate()
        raise
    finally:
        _running.discard(process)
    if status in {124, 137}:
        raise StepError(f"{words[0]} took longer than {timeout:.0f} s and was ended", lines)
    if status != 0:
        raise StepError(f"{Path(words[0]).name} exited with status {status}", lines)
    return lines


def side_by_side(actions: Iterable[Callable[[], object]]) -> None:
    """Run actions two at a time; raises the first error when all have ended."""
    with ThreadPoolExecutor(2) as executor:
        futures = [executor.submit(action) for action in actions]
        try:
            for future in futures:
                future.result()
        except KeyboardInterrupt:
            _is_interrupted.set()
            for process in _running.copy():
                process.terminate()
            raise


def configure(preset: str, python: str | Path) -> None:
    """Configure a CMake preset for an interpreter, from scratch when it was another one before."""
    cache = BUILD / preset / "CMakeCache.txt"
    known = (
        re.search(r"^Python_EXECUTABLE:\w+=(.*)$", cache.read_text(), re.M)
        if cache.exists()
        else None
    )
    fresh = ["--fresh"] if known and known[1] != str(python) else []
    run(["cmake", "--preset", preset, f"-DPython_EXECUTABLE={python}", *fresh])


def digest(parts: Iterable[str | Path]) -> str:
    """Return a hash of strings and of files (name and content): equal when nothing changed."""
    total = hashlib.sha256()
    for part in parts:
        total.update(str(part).encode() + b"\0")
        if isinstance(part, Path):
            total.update(part.read_bytes() + b"\0")
    return total.hexdigest()


def is_done(stamp: Path, content: str) -> bool:
    """Tell whether `stamp` records that a step with this content succeeded."""
    return stamp.is_file() and stamp.read_text() == content


def mark_done(stamp: Path, content: str) -> None:
    """Record a step that succeeded, for is_done."""
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(content)
