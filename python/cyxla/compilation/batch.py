# SPDX-License-Identifier: Apache-2.0
"""`compile_programs`, which compiles several programs at once and shows a progress bar."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Final

import numpy as np

from cyxla import runtime
from cyxla.compilation.cache import warn_of_failures
from cyxla.compilation.compile import check_platform, compile_checked, usable_settings
from cyxla.compilation.settings import Cache, CompileOption, CompileRequest, check_settings
from cyxla.compilation.statistics import CompiledPair
from cyxla.errors import ArgumentError, CompileError
from cyxla.program.program import Program

__all__ = ["compile_programs"]

_BAR_DELAY_SECONDS: Final = 2.0
_REFRESH_SECONDS: Final = 0.5


def compile_programs(
    programs: Iterable[Program],
    *,
    options: Mapping[str, CompileOption] | None = None,
    intra_op_threads: int | None = None,
    outputs_in_place: bool = False,
    route: str = "auto",
    exact: bool = False,
    cache: Cache = None,
    max_workers: int | None = None,
    progress: bool | None = None,
) -> tuple[CompiledPair, ...]:
    """Return several programs, compiled in parallel on threads, in their order.

    After Ctrl-C or a failure, no further compilation starts. The call raises when those in flight
    have ended, and drops their results.

    Args:
        programs: programs from `cyxla.lower`.
        options: as for `compile_program`, for every program.
        intra_op_threads: as for `compile_program`.
        outputs_in_place: as for `compile_program`.
        route: as for `compile_program`.
        exact: as for `compile_program`.
        cache: as for `compile_program`.
        max_workers: how many to compile at once; None means the number of CPUs that this process
            may use. Each compilation in flight takes memory.
        progress: whether to show a progress bar on stderr. None shows one on a terminal if the call
            takes longer than two seconds.

    Raises:
        ArgumentError: an argument is invalid.
        PluginError: no plugin can be loaded.
        CompileError: a program cannot be compiled; the message has its index and name. If several
            fail, the first one's error is raised.
        UnsupportedError: as for `compile_program`.
        RuntimeWarning: see `compile_program`.
    """
    chosen = _checked_programs(programs)
    settings = check_settings(
        chosen, options, intra_op_threads, outputs_in_place, route, exact, cache
    )
    num_workers = _checked_workers(max_workers, len(chosen))
    if not chosen:
        return ()
    info = runtime.runtime_info()
    for index, program in enumerate(chosen):
        with _naming(index, program):
            check_platform(program, info)
    settings = usable_settings(settings, info, stacklevel=3)

    def work(index: int) -> CompiledPair:
        with _naming(index, chosen[index]):
            return compile_checked(CompileRequest(chosen[index], settings, info))

    futures: list[Future[CompiledPair]] = []
    try:
        with (
            _progress_bar(progress, len(chosen)) as bar,
            ThreadPoolExecutor(num_workers, "cyxla-compile") as executor,
        ):
            try:
                futures.extend(executor.submit(work, index) for index in range(len(chosen)))
                _wait(futures, bar)
            except KeyboardInterrupt:
                _note_interrupt()
                raise
            finally:
                executor.shutdown(wait=False, cancel_futures=True)
        warn_of_failures(settings.cache_folder, stacklevel=2)
        failed = [
            error
            for future in futures
            if not future.cancelled() and (error := future.exception()) is not None
        ]
        if failed:
            raise failed[0]
        return tuple(future.result() for future in futures)
    finally:
        futures.clear()  # a traceback would keep the executables alive


def _wait(futures: list[Future[CompiledPair]], bar: Any) -> None:
    """Wait until all futures have ended or one has failed."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, _REFRESH_SECONDS, FIRST_COMPLETED)
        if bar is not None:
            bar.update(len(done))
        if any(future.exception() is not None for future in done):
            return


def _note_interrupt() -> None:
    """Print that Ctrl-C takes effect later: a compilation cannot be interrupted."""
    if sys.stderr is not None:
        notice = "Ctrl-C is noted; it takes effect once the compilations in flight have ended"
        print(f"\ncyxla: {notice}", file=sys.stderr, flush=True)


def _progress_bar(progress: bool | None, total: int) -> contextlib.AbstractContextManager[Any]:
    """A tqdm bar, or None where none is to be shown."""
    if progress is False or sys.stderr is None:
        return contextlib.nullcontext()
    from tqdm import tqdm  # type: ignore[import-untyped]

    # Without tqdm's monitor thread: it would outlive the bar and make fork() unsafe.
    bar_class = type("Bar", (tqdm,), {"monitor_interval": 0})
    bar: contextlib.AbstractContextManager[Any] = bar_class(
        total=total,
        desc="compiling",
        unit="program",
        file=sys.stderr,
        delay=_BAR_DELAY_SECONDS if progress is None else 0,
        disable=None if progress is None else False,  # None: tqdm shows it on a terminal only
        miniters=0,  # keep the elapsed time going while no program ends
    )
    return bar


@contextlib.contextmanager
def _naming(index: int, program: Program) -> Iterator[None]:
    where = f"programs[{index}], {program.name!r}"
    try:
        yield
    except CompileError as error:
        raise CompileError(f"{where}: {error}") from error.__cause__
    except Exception as error:
        error.add_note(f"cyxla was compiling {where}")
        raise


def _checked_programs(programs: object) -> tuple[Program, ...]:
    if isinstance(programs, Program) or not isinstance(programs, Iterable):
        raise ArgumentError(
            f"programs must be a list of programs, got {type(programs).__name__}; for one program"
            " use cyxla.compile_program"
        )
    chosen = tuple(programs)
    for index, program in enumerate(chosen):
        if not isinstance(program, Program):
            raise ArgumentError(
                f"programs[{index}] must be a cyxla.Program, got {type(program).__name__};"
                " cyxla.lower makes one"
            )
    return chosen


def _checked_workers(max_workers: object, num_programs: int) -> int:
    if max_workers is None:
        return max(1, min(num_programs, _usable_cpus()))
    is_number = isinstance(max_workers, int | np.integer) and not isinstance(max_workers, bool)
    if not is_number or int(max_workers) < 1:  # type: ignore[call-overload]
        raise ArgumentError(f"max_workers must be None or at least 1, got {max_workers!r}")
    return int(max_workers)  # type: ignore[call-overload, no-any-return]


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
