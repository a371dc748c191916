# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a long step: a spinner on a terminal, periodic lines in a log file."""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator

_LOG_SECONDS = 5.0  # between two lines of one step in a log file
_WIDTH = 78


@contextlib.contextmanager
def step(title: str) -> Iterator[Callable[[str], None]]:
    """Announce a step and print its duration. Yields a function that sets the displayed state."""
    display = _Display(title)
    watcher = threading.Thread(target=display.watch, daemon=True)
    print(f"==> {title}", flush=True)
    watcher.start()
    outcome = "failed"
    try:
        yield display.show
        outcome = "done"
    finally:
        display.ended.set()
        watcher.join()
        print(f"    {outcome} in {display.seconds():.1f} s", flush=True)


class _Display:
    def __init__(self, title: str) -> None:
        self.title = title
        self.state = ""
        self.ended = threading.Event()
        self.start = time.monotonic()

    def show(self, state: str) -> None:
        self.state = state

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def watch(self) -> None:
        if sys.stdout.isatty():
            for sign in itertools.cycle("|/-\\"):
                line = f"    {sign} {self.seconds():.0f} s  {self.state}"
                print(f"\r{line[:_WIDTH]:{_WIDTH}}", end="", flush=True)
                if self.ended.wait(0.1):
                    break
            print(f"\r{'':{_WIDTH}}\r", end="", flush=True)
        else:
            while not self.ended.wait(_LOG_SECONDS):
                print(f"    ... {self.seconds():.0f} s  {self.state}".rstrip(), flush=True)
