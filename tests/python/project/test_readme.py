# SPDX-License-Identifier: Apache-2.0
"""The code of the documents runs, and their excerpts match the files they name.

The word after the language of a fenced block selects the check: "run" blocks of a page run in
order as one program, as a reader would paste them; "pycon" blocks are sessions whose output is
compared; "file=PATH" blocks are that file without its licence line, "from=PATH" blocks a part.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from child_process import run_code, run_process

_ROOT = Path(__file__).resolve().parents[3]
_PAGES = sorted([*_ROOT.glob("*.md"), *_ROOT.glob("docs/*.md")])
_PAGE_NAMES = [page.relative_to(_ROOT).as_posix() for page in _PAGES]
_BLOCK = re.compile(r"^```(\S*) *([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_PENDULUM = _ROOT / "examples" / "pendulum"

_SESSION = """
import doctest, sys
text = sys.stdin.read()
test = doctest.DocTestParser().get_doctest(text, {}, sys.argv[1], sys.argv[1], 0)
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
runner.run(test)
print(runner.tries, "examples")
sys.exit(runner.failures != 0)
"""


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    mark: str
    text: str


def _blocks(page: Path) -> list[Block]:
    return [Block(*match) for match in _BLOCK.findall(page.read_text())]


def _pages_with(language: str, mark: str) -> list[str]:
    return [
        name
        for name, page in zip(_PAGE_NAMES, _PAGES, strict=True)
        if any(block[:2] == (language, mark) for block in _blocks(page))
    ]


def _without_licence(text: str) -> str:
    lines = text.splitlines()
    assert "SPDX-License-Identifier" in lines[0]
    return "\n".join(lines[1:]).strip()


@pytest.mark.parametrize("name", _pages_with("python", "run"))
def test_code_runs(name: str, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    parts = [block.text for block in _blocks(_ROOT / name) if block[:2] == ("python", "run")]
    script.write_text("\n".join(parts))
    # The reference example passes doubles to a program of floats, which warns.
    narrowing = "ignore:argument 0 (:UserWarning"
    ended = run_process("-W", "error", "-W", narrowing, str(script))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("name", _pages_with("pycon", ""))
def test_sessions_print_what_is_shown(name: str) -> None:
    text = "\n".join(block.text for block in _blocks(_ROOT / name) if block.language == "pycon")
    ended = subprocess.run(
        [sys.executable, "-c", _SESSION, name],
        input=text,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == f"{text.count('>>> ')} examples"


@pytest.mark.parametrize("name", _PAGE_NAMES)
def test_excerpts_are_the_files(name: str) -> None:
    for block in _blocks(_ROOT / name):
        if block.mark.startswith("file="):
            file = _ROOT / block.mark.removeprefix("file=")
            assert block.text.strip() == _without_licence(file.read_text()), file
        elif block.mark.startswith("from="):
            assert block.text in (_ROOT / block.mark.removeprefix("from=")).read_text(), block


@pytest.mark.parametrize("name", _PAGE_NAMES)
def test_every_mark_is_known(name: str) -> None:
    unknown = [
        block[:2]
        for block in _blocks(_ROOT / name)
        if not (block.mark == "" or block[:2] == ("python", "run"))
        and not block.mark.startswith(("file=", "from="))
    ]
    assert unknown == []


@pytest.mark.parametrize("name", _PAGE_NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = _ROOT / name
    for target, anchor in _LINK.findall(page.read_text()):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), target
        if anchor:
            assert anchor in {_anchor(title) for title in _HEADING.findall(linked.read_text())}


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_the_documents_are_there() -> None:
    expected = {"README.md", "HACKING.md", "CHANGELOG.md"}
    expected |= {f"docs/{page}.md" for page in ("plugins", "python", "native", "troubleshooting")}
    assert expected <= set(_PAGE_NAMES)
    assert _pages_with("python", "run")
    assert _pages_with("pycon", "")


def test_the_pendulum_example_builds_and_runs(tmp_path: Path) -> None:
    meson = ["-m", "mesonbuild.mesonmain"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    for arguments in (["setup", str(tmp_path), str(_PENDULUM)], ["compile", "-C", str(tmp_path)]):
        ended = run_process(*meson, *arguments, env={"PATH": path}, seconds=250)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    code = f"""
        import runpy, sys
        sys.path.insert(0, {str(tmp_path)!r})
        runpy.run_path({str(_PENDULUM / "pendulum.py")!r}, run_name="__main__")
    """
    lines = run_code(code).splitlines()
    states = [line.partition(": ")[2] for line in lines]
    assert [line.partition(":")[0] for line in lines] == [
        "pendulum_c",
        "pendulum_cpp",
        "pendulum_cython",
    ]
    assert len(set(states)) == 1, lines
