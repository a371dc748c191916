# SPDX-License-Identifier: Apache-2.0
"""Marks tests by folder; checks that cyxla is the installed one and that skips are permitted."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(_ROOT / "tools"))

from check_skips import read_patterns, unexpected  # noqa: E402

_skipped: dict[str, str] = {}


# The folders whose tests depend on more than cyxla; pyproject.toml describes the marks.
_MARKS_OF_FOLDERS = {
    "executable": pytest.mark.interpreter,
    "interface": pytest.mark.interpreter,
    "process": pytest.mark.interpreter,
    "lowering": pytest.mark.jax,
}
# Packages and libraries of the plugins that are not the default one.
_OTHER_PLUGINS = {
    "fastatomstruct-xla-cpu", "libpjrt_cpu.so", "xla-cpu-pjrt", "xla_cpu_pjrt.so",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of each folder, and those that are parametrized with another plugin."""
    for item in items:
        if mark := _MARKS_OF_FOLDERS.get(item.path.parent.name):
            item.add_marker(mark)
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if any(isinstance(value, str) and value in _OTHER_PLUGINS for value in parameters):
            item.add_marker(pytest.mark.plugins)


def _cyxla_folder() -> Path | None:
    spec = importlib.util.find_spec("cyxla")
    return Path(spec.origin).parent if spec and spec.origin else None


def pytest_configure(config: pytest.Config) -> None:
    """Stop unless cyxla is installed in CYXLA_REQUIRE_INSTALLED, if that is set."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A job in the background ignores it, and so would the processes that tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = _cyxla_folder()
    required = os.environ.get("CYXLA_REQUIRE_INSTALLED")
    if required and (folder is None or not folder.is_relative_to(required)):
        raise pytest.UsageError(f"cyxla must be the one installed in {required}, not {folder}")


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled modules of `native`."""
    from support.native import build_modules  # not before pytest_configure has looked for cyxla

    return build_modules(tmp_path_factory)


@pytest.fixture(scope="session")
def c_table(modules: Path) -> ModuleType:
    """The module c_table."""
    from support.native import import_module

    return import_module(modules, "c_table")


def pytest_report_header() -> str:
    """Say which cyxla is tested."""
    return f"cyxla: {_cyxla_folder()}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember skipped tests; an expected failure counts as one."""
    if report.skipped:
        _skipped[report.nodeid] = str(report.longrepr)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Remember files that were skipped as a whole."""
    if report.skipped:
        _skipped[report.nodeid] = str(report.longrepr)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session for skips that the list does not permit."""
    if unexpected(_skipped, read_patterns()) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the skips that the list does not permit."""
    for name in unexpected(_skipped, read_patterns()):
        terminalreporter.write_line(
            f"error: {name} was skipped, which tests/expected_skips.txt does not permit", red=True
        )
