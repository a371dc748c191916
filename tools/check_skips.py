# SPDX-License-Identifier: Apache-2.0
"""Fails on skipped tests that tests/expected_skips.txt does not permit.

    python3 tools/check_skips.py build/dev/ctest.xml     # a JUnit file that ctest wrote

Each line of the list is a pattern of test names, ' # ' and the reason. tests/python/conftest.py
applies the same list to pytest.
"""

from __future__ import annotations

import fnmatch
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path

EXPECTED_SKIPS = Path(__file__).resolve().parent.parent / "tests" / "expected_skips.txt"


def read_patterns(path: Path = EXPECTED_SKIPS) -> list[str]:
    """Return the patterns of a list of permitted skips. ValueError for a line without a reason."""
    patterns = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.partition(" # ")
        if not reason.strip():
            raise ValueError(f"{path}:{number}: no reason; write '{pattern.strip()} # why'")
        patterns.append(pattern.strip())
    return patterns


def unexpected(names: Iterable[str], patterns: list[str]) -> list[str]:
    """Return the names that no pattern permits. Brackets in patterns stand for themselves."""
    escaped = [pattern.replace("[", "[[]") for pattern in patterns]
    return [
        name for name in names if not any(fnmatch.fnmatchcase(name, pattern) for pattern in escaped)
    ]


def skipped_in_junit(path: Path) -> Iterator[str]:
    """Yield the names of the tests of a JUnit file of ctest that did not run."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") in {"notrun", "disabled"} or case.find("skipped") is not None:
            yield case.get("name", "")


def main() -> int:
    """Check the JUnit file named; print each skip that is not permitted and return 1 for any."""
    found = unexpected(skipped_in_junit(Path(sys.argv[1])), read_patterns())
    for name in found:
        print(f"error: {name} was skipped, which tests/expected_skips.txt does not permit")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
