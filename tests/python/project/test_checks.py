# SPDX-License-Identifier: Apache-2.0
"""Each check of the source text, and the check of skips, finds a planted fault and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import run_tests
from pythons import Search

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.checks, pytest.mark.timeout(600)]


class Fault(NamedTuple):
    """A text appended to a file of the tree, and the words the check must then print."""

    check: str
    file: str
    text: str
    message: str


FAULTS = [
    Fault(
        "layers",
        "src/base/wire.h",
        '#include "pjrt/status.h"\n',
        "src/base must not include from src/pjrt",
    ),
    Fault("layers", "src/base/wire.h", "#include <Python.h>\n", "knows Python"),
    Fault("layers", "src/runtime/program.h", "#include <pjrt_c_api.h>\n", "only src/pjrt includes"),
    Fault("layers", "src/base/wire.h", "#include <poll.h>\n", "<poll.h> is not in the list"),
    Fault("layers", "src/base/wire.h", '#include "base/wire.h"\n', "a circle"),
    Fault("layers", "src/direct/read/shape.h", '#include "direct/run/runner.h"\n', "one way"),
    Fault("layers", "python/cyxla/errors.py", "from . import runtime\n", "the whole name"),
    Fault("layers", "python/cyxla/errors.py", "from cyxla import runtime\n", "comes later"),
    Fault(
        "layers",
        "python/cyxla/plugins/options.py",
        "def late() -> None:\n    from cyxla.program import file\n",
        "plugins.options must not import cyxla.program.file",
    ),
    Fault(
        "layers",
        "python/cyxla/plugins/options.py",
        "from cyxla.plugins import discovery\n",
        "a circle: cyxla.plugins.options -> cyxla.plugins.discovery -> cyxla.plugins.options",
    ),
    Fault(
        "layers", "python/cyxla/runtime.py", "from cyxla.plugins import Plugin\n", "not a module"
    ),
    Fault("layers", "python/cyxla/dtypes.py", "import jax\n", "program.versions import jax"),
    Fault("layers", "python/cyxla/compilation/compile.py", "import jax\n", "works without jax"),
    Fault(
        "layers",
        "python/cyxla/lowering/tracing.py",
        "import jax._src.core\n",
        "only lowering.jax_internals imports jax._src.core",
    ),
    Fault(
        "layers",
        "python/cyxla/_runtime.pyx",
        "from cyxla import errors, compilation\n",
        "must not import cyxla.compilation",
    ),
    Fault("layers", "src/base/new.cpp", "namespace cyxla {}\n", "SPDX-License-Identifier"),
    Fault("layers", "src/base/wire.h", "//\n" * 400, "at most 400 are allowed"),
    Fault("layers", "src/base/wire.h", "// The file that\n// is no plugin.\n", "plainer words"),
    Fault("layers", "README.md", "It stays for ever.\n", "say 'for ever' in plainer words"),
    Fault("clang-format", "src/base/wire.h", "int  f( );\n", "code should be clang-formatted"),
    Fault("ruff-format", "tools/steps.py", "x = {1:2}\n", "File would be reformatted"),
    Fault("ruff", "tools/steps.py", "import fractions\n", "F401"),
    Fault("mypy", "tools/steps.py", 'digits: int = "one"\n', "Incompatible types in assignment"),
    Fault(
        "cppcheck",
        "src/base/wire.cpp",
        "int past_the_end() {\n  int a[2] = {0, 1};\n  return a[2];\n}\n",
        "arrayIndexOutOfBounds",
    ),
    Fault(
        "clang-tidy",
        "src/base/wire.cpp",
        "namespace cyxla {\nconst char* null_text() { return 0; }\n}  // namespace cyxla\n",
        "modernize-use-nullptr",
    ),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree, to be changed."""
    copy = tmp_path_factory.mktemp("tree") / "cyxla"
    ignored = shutil.ignore_patterns("build", ".git", "__pycache__", ".*_cache", "dist")
    shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
    mypy_cache = ROOT / "build" / "mypy-cache"
    if mypy_cache.exists():  # a minute faster
        shutil.copytree(mypy_cache, copy / "build" / "mypy-cache")
    return copy


@pytest.fixture
def plant(tree: Path) -> Iterator[Callable[[str, str], None]]:
    """Return a function that appends text to a file of the copy until the test ends."""
    originals: dict[Path, bytes | None] = {}

    def append(file: str, text: str) -> None:
        path = tree / file
        originals[path] = path.read_bytes() if path.exists() else None
        with path.open("a") as stream:
            stream.write(text)

    yield append
    for path, content in originals.items():
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)


def run(*command: str | Path, cwd: Path) -> tuple[int, str]:
    """Return the exit status and all output of a command."""
    result = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


def run_check(tree: Path, check: str) -> tuple[int, str]:
    """Return the exit status and the output of one check of the copy."""
    # One small layer is enough to show that clang-tidy's findings fail the check.
    target = ["--target", "cyxla_base"] if check == "clang-tidy" else []
    return run(sys.executable, "tools/lint.py", check, *target, cwd=tree)


@pytest.mark.parametrize("check", list(dict.fromkeys(fault.check for fault in FAULTS)))
def test_check_passes_without_a_fault(tree: Path, check: str) -> None:
    status, output = run_check(tree, check)
    assert status == 0, output


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.check}-{fault.message}")
def test_check_finds_a_planted_fault(
    tree: Path, plant: Callable[[str, str], None], fault: Fault
) -> None:
    plant(fault.file, fault.text)
    status, output = run_check(tree, fault.check)
    assert status == 1, output
    assert fault.message in output
    assert Path(fault.file).name in output


SKIPPING_TEST = """
import pytest

@pytest.mark.parametrize("case", ["a", "b"])
def test_skipped(case):
    pytest.skip("no reason at all")

def test_passed():
    pass
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_pytest_fails_on_a_skip_that_is_not_permitted(
    tree: Path, plant: Callable[[str, str], None], workers: int
) -> None:
    plant("tests/python/test_planted.py", SKIPPING_TEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"-n{workers}"]
    command += ["tests/python/test_planted.py"]
    name = "tests/python/test_planted.py::test_skipped[a]"
    plant("tests/expected_skips.txt", "tests/python/test_planted.py::test_skipped[b] # planted\n")

    status, output = run(*command, cwd=tree)
    assert status == 1, output
    assert f"error: {name} was skipped" in output
    assert "test_skipped[b] was skipped" not in output

    plant("tests/expected_skips.txt", f"{name} # planted\n")
    status, output = run(*command, cwd=tree)
    assert status == 0, output


@pytest.mark.parametrize("workers", [0, 2])
def test_pytest_fails_on_a_file_that_is_skipped_as_a_whole(
    tree: Path, plant: Callable[[str, str], None], workers: int
) -> None:
    plant("tests/python/test_planted.py", "def test_passed(): pass\n")
    name = "tests/python/test_planted_file.py"
    plant(name, "import pytest\npytest.skip('none', allow_module_level=True)\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"-n{workers}"]
    status, output = run(*command, "tests/python/test_planted.py", name, cwd=tree)
    assert status == 1, output
    assert f"error: {name} was skipped" in output


def test_list_of_skips_needs_reasons(tree: Path, plant: Callable[[str, str], None]) -> None:
    plant("tests/expected_skips.txt", "tests/python/test_x.py::test_y\n")
    (tree / "junit.xml").write_text("<testsuite/>")
    status, output = run(sys.executable, "tools/check_skips.py", "junit.xml", cwd=tree)
    assert status == 1
    assert "no reason" in output


def test_ctest_fails_on_a_skip_that_is_not_permitted(
    tree: Path, plant: Callable[[str, str], None], tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\n"
        "project(planted LANGUAGES NONE)\n"
        "enable_testing()\n"
        "foreach(name passed skipped disabled)\n"
        "  add_test(NAME base_test.${name} COMMAND ${CMAKE_COMMAND} -E echo SKIPPED ${name})\n"
        "endforeach()\n"
        'set_tests_properties(base_test.skipped PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")\n'
        "set_tests_properties(base_test.disabled PROPERTIES DISABLED TRUE)\n"
    )
    build = tmp_path / "build"
    for command in (
        ["cmake", "-S", tmp_path, "-B", build],
        ["ctest", "--test-dir", build, "--output-junit", "ctest.xml"],
    ):
        status, output = run(*command, cwd=tmp_path)
        assert status == 0, output

    check = [sys.executable, "tools/check_skips.py", build / "ctest.xml"]
    plant("tests/expected_skips.txt", "base_test.dis* # planted\n")
    status, output = run(*check, cwd=tree)
    assert status == 1, output
    assert "error: base_test.skipped was skipped" in output
    assert "disabled" not in output

    plant("tests/expected_skips.txt", "base_test.skipped # planted\n")
    assert run(*check, cwd=tree) == (0, "")


def test_closing_lines_name_the_tests_that_failed(tmp_path: Path) -> None:
    (tmp_path / "test_planted.py").write_text(
        "import pytest\n\n"
        "def test_good(): pass\n\n"
        "def test_bad(): assert 1 == 2\n\n"
        "@pytest.fixture\ndef broken(): raise ValueError\n\n"
        "def test_unready(broken): pass\n"
    )
    runner = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir=.", "."]
    status, output = run(*runner, cwd=tmp_path)
    assert status == 1
    *failed, counts = run_tests.closing_lines(output.splitlines(), " in ")
    assert failed == [
        "FAILED test_planted.py::test_bad - assert 1 == 2",
        "ERROR test_planted.py::test_unready - ValueError",
    ]
    assert "1 failed, 1 passed, 1 error in" in counts

    (tmp_path / "CTestTestfile.cmake").write_text(
        "add_test(planted.good cmake -E true)\nadd_test(planted.bad cmake -E false)\n"
    )
    status, output = run("ctest", cwd=tmp_path)
    assert status != 0
    assert run_tests.closing_lines(output.splitlines(), " tests passed") == [
        "2 - planted.bad (Failed)",
        "50% tests passed, 1 tests failed out of 2",
    ]


def test_lanes_run_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    met = threading.Barrier(2)

    def matrix(session: run_tests.Session) -> None:
        met.wait(timeout=60)
        run_tests.run([sys.executable, "-c", "print('of a command'); raise SystemExit(3)"])

    monkeypatch.setattr(run_tests, "LANES", (("matrix", "soak"), ("fuzz",)))
    monkeypatch.setattr(run_tests.Session, "matrix", matrix)
    monkeypatch.setattr(run_tests.Session, "soak", lambda session: run_tests.say("soaked"))
    monkeypatch.setattr(run_tests.Session, "fuzz", lambda session: met.wait(timeout=60))
    session = run_tests.Session({"3.11": Path()}, [], fuzz_seconds=0, full=False, whole=True)
    session.run_lanes()
    assert len(session.failures) == 1
    assert session.failures[0].endswith("exited with status 3")
    assert set(session.seconds) == {"matrix", "soak", "fuzz"}
    lines = capsys.readouterr().out.splitlines()
    assert "[matrix] of a command" in lines
    assert "[soak] soaked" in lines


@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_missing_interpreter_fails_in_ci_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, status: int
) -> None:
    search = Search({"3.11": Path(sys.executable)}, ["/usr/bin/python3.12: no module named venv"])
    monkeypatch.setattr(run_tests, "find_pythons", lambda: search)
    monkeypatch.setattr(run_tests.Session, "ctest", lambda session: None)
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "ctest"])
    monkeypatch.setenv("CI", ci)
    assert run_tests.main() == status
    output = capsys.readouterr().out
    assert "Python 3.12: NOT FOUND" in output
    assert "passed over /usr/bin/python3.12: no module named venv" in output
    assert ("error: CI needs Python 3.12, 3.13 too" in output) == (ci == "true")
