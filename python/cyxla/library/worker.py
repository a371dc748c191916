# SPDX-License-Identifier: Apache-2.0
"""Generates and tries code in a child process: LLVM ends a process that meets what it cannot do."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from cyxla.errors import LibraryError
from cyxla.library.driver import Source

if TYPE_CHECKING:
    from cyxla.library.emit import Target

# Building ten thousand operations takes half a minute on a slow machine.
_SECONDS: Final = 1800
_ERROR_CHARACTERS: Final = 2000


class Job(NamedTuple):
    """A function to build, and the inputs to try it on.

    Attributes:
        source: the function and its kernels, as the plugin wrote them.
        adds_contract: whether the plugin fuses sums that its IR does not mark.
        inputs: for each trial the bytes of each input.
        output_bytes: the size of each output.
        may_hang: whether it has a loop that might not end on some inputs.
    """

    source: Source
    adds_contract: bool
    inputs: Sequence[Sequence[bytes]]
    output_bytes: Sequence[int]
    may_hang: bool


class Request(NamedTuple):
    """Functions to build into one object file.

    Attributes:
        jobs: the functions.
        extra_text: more IR that goes into it.
        target: the machine that it is for.
        flush_subnormals: whether the functions treat subnormal numbers as zero.
    """

    jobs: Sequence[Job]
    extra_text: str
    target: Target
    flush_subnormals: bool


class Built(NamedTuple):
    """What was built.

    Attributes:
        code: the object file.
        apart: by function the kernels whose products and sums could not be written down exactly, so
            they are compiled by themselves, as the plugin does it.
        outputs: for each function and trial the bytes of each output, or None where a loop did
            not end.
    """

    code: bytes
    apart: dict[str, tuple[str, ...]]
    outputs: list[list[list[bytes] | None]]


def build(request: Request) -> Built:
    """Build a request in a child process.

    Raises LibraryError when LLVM cannot do it, or when a function crashes on the trial inputs.
    """
    command = [sys.executable, "-P", "-c", "from cyxla.library.worker import main; main()"]
    try:
        ended = subprocess.run(
            command,
            input=pickle.dumps(request),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LibraryError(
            f"generating code took longer than {_SECONDS} s and was given up; build smaller"
            " programs"
        ) from None
    if ended.returncode != 0:
        printed = ended.stderr.decode(errors="replace").strip()[-_ERROR_CHARACTERS:]
        raise LibraryError(
            f"the process that generates code for {request.target.triple} ended with"
            f" {'signal' if ended.returncode < 0 else 'status'} {abs(ended.returncode)}: {printed}"
        )
    answer = pickle.loads(ended.stdout)
    if isinstance(answer, str):
        raise LibraryError(answer)
    assert isinstance(answer, Built)
    return answer


def _build_here(request: Request) -> Built:
    from cyxla.library import emit
    from cyxla.library.flushing import write_flushing
    from cyxla.library.trial import Trial, run_trials

    target = request.target
    host = emit.target_of(None, None)
    sources = [_exact(job) for job in request.jobs]
    wanted = sources
    if request.flush_subnormals:
        wanted = [write_flushing(source, target.architecture) for source in sources]
    module = emit.link(wanted, target, request.extra_text)
    code = emit.machine_of(target).emit_object(module)
    tried = code
    if target.triple != host.triple:
        tried = emit.machine_of(host).emit_object(emit.link(sources, host))
    outputs = run_trials(
        tried,
        [
            Trial(source, job.inputs, job.output_bytes, job.may_hang)
            for source, job in zip(sources, request.jobs, strict=True)
        ],
    )
    return Built(code, {source.name: tuple(sorted(source.apart)) for source in sources}, outputs)


def _exact(job: Job) -> Source:
    """Return the function with kernels that keep the plugin's rounding when they are optimized."""
    from cyxla.library.fma import exact_kernel, with_contract
    from cyxla.library.ir import readable

    kernels = {symbol: readable(text) for symbol, text in job.source.kernels.items()}
    if job.adds_contract:
        kernels = {symbol: with_contract(text) for symbol, text in kernels.items()}
    apart = set(job.source.apart)
    for symbol in sorted(kernels.keys() - apart):
        exact = exact_kernel(kernels[symbol])
        if exact.is_equal:
            kernels[symbol] = exact.text
        else:
            apart.add(symbol)
    return job.source._replace(kernels=kernels, apart=frozenset(apart))


def main() -> None:
    """Answer the request on standard input on standard output."""
    request = pickle.load(sys.stdin.buffer)
    try:
        answer: Built | str = _build_here(request)
    except LibraryError as error:
        answer = str(error)
    sys.stdout.buffer.write(pickle.dumps(answer))
