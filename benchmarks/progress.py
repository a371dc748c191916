# SPDX-License-Identifier: Apache-2.0
"""One line on the terminal that says what is under way."""

from __future__ import annotations

import sys
import time


class Progress:
    """Writes to standard error: a line that is rewritten on a terminal, sparse lines elsewhere."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._last = 0.0

    def show(self, text: str) -> None:
        """Say what happens now; elsewhere than on a terminal at most every five seconds."""
        now = time.monotonic()
        if self._is_terminal:
            print(
                f"\r\033[K[{now - self._start:4.0f} s] {text}", end="", file=sys.stderr, flush=True
            )
        elif now - self._last >= 5:
            self._last = now
            print(f"[{now - self._start:4.0f} s] {text}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays."""
        clear = "\r\033[K" if self._is_terminal else ""
        print(f"{clear}{text}", file=sys.stderr, flush=True)
