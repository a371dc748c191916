# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Gradient descent; Cython in pure Python mode, with the threads of C11."""

import cython
import numpy as np
from cython.cimports.cyxla._pjrt import PJRT_Buffer_Type_F64
from cython.cimports.cyxla._runtime import (
    ABI_VERSION,
    Input,
    ProgramSpec,
    aligned_memory,
    execute,
    free_aligned,
    last_error,
    program_spec,
)
from cython.cimports.libc.stdlib import calloc, free
from cython.cimports.libc.threads import thrd_create, thrd_join, thrd_success, thrd_t

import cyxla

cyxla.check_abi(ABI_VERSION)

# One thread's work: `position` moves from its start to the end of the descent.
Worker = cython.struct(
    thread=thrd_t,
    started=cython.bint,
    spec=cython.pointer[cython.const[ProgramSpec]],
    position=cython.pointer[cython.double],
    step=cython.double,
    num_steps=cython.long,
    failed=cython.bint,
    message=cython.char[1024],
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(worker: cython.pointer[Worker], gradient: cython.pointer[cython.double]) -> cython.bint:
    """Take the steps; return whether one failed. The value's destination is NULL."""
    inputs = cython.declare(Input[1])
    outputs = cython.declare(cython.p_void[2])
    size: cython.size_t = worker.spec.input_elements[0]
    i: cython.size_t
    inputs[0].data = worker.position
    inputs[0].element_type = PJRT_Buffer_Type_F64
    inputs[0].num_elements = size
    outputs[0] = cython.NULL
    outputs[1] = gradient
    for _ in range(worker.num_steps):
        if execute(worker.spec, inputs, outputs, True) != 0:
            return True
        for i in range(size):
            worker.position[i] -= worker.step * gradient[i]
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _work(argument: cython.p_void) -> cython.int:
    """Run on a thread that Python does not know."""
    worker: cython.pointer[Worker] = cython.cast(cython.pointer[Worker], argument)
    gradient: cython.p_void = aligned_memory(worker.spec.output_bytes[1])
    worker.failed = gradient == cython.NULL or _walk(
        worker, cython.cast(cython.pointer[cython.double], gradient)
    )
    if worker.failed:
        last_error(worker.message, 1024)
    free_aligned(gradient)
    return 0


def descend(executable, starts: cython.double[:, ::1], step: cython.double, num_steps: cython.long):
    """Return the points where the descent ends, a row for each row of `starts`.

    Each row has a thread of its own. This thread waits for them, and keeps the GIL.
    """
    spec: cython.pointer[cython.const[ProgramSpec]] = program_spec(executable)
    ends = np.array(starts)
    positions: cython.double[:, ::1] = ends
    num_workers: cython.Py_ssize_t = positions.shape[0]
    t: cython.Py_ssize_t
    if spec.num_inputs != 1 or spec.num_outputs != 2:
        raise ValueError("the function must take a vector and return its value and its gradient")
    if spec.input_elements[0] != positions.shape[1]:
        raise ValueError(
            f"the function takes {spec.input_elements[0]} numbers, starts has {positions.shape[1]}"
        )
    workers: cython.pointer[Worker] = cython.cast(
        cython.pointer[Worker], calloc(num_workers, cython.sizeof(Worker))
    )
    if workers == cython.NULL:
        raise MemoryError()
    for t in range(num_workers):
        workers[t].spec = spec
        workers[t].position = cython.address(positions[t, 0])
        workers[t].step = step
        workers[t].num_steps = num_steps
        workers[t].started = (
            thrd_create(cython.address(workers[t].thread), _work, cython.address(workers[t]))
            == thrd_success
        )
    failure = None
    for t in range(num_workers):
        if not workers[t].started:
            failure = "a thread cannot be started"
            continue
        thrd_join(workers[t].thread, cython.NULL)
        if workers[t].failed:
            failure = workers[t].message.decode("utf-8", "replace")
    free(workers)
    if failure is not None:
        raise RuntimeError(failure)
    return ends
