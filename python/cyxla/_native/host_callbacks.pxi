# SPDX-License-Identifier: Apache-2.0
# Calls Python functions during an execution, and converts their arguments and results.
from libc.string cimport memcpy

# The number of host callbacks' exceptions that are kept for the Python calls in flight.
cdef enum:
    MAX_FAILURES = 64

cdef int32_t TOKEN = dtypes.ElementType.TOKEN

cdef object answer_host_call = None    # program.host_callbacks.answer
cdef int watched_calls = 0             # calls in flight, from Python, of programs that call Python
cdef dict failures = {}                # exceptions for those calls, by number
cdef uint64_t last_failure = 0


def use_host_callbacks(answer):
    """Set the function that answers host callbacks, once per process; return whether this call set it."""
    global answer_host_call
    cdef Host host
    if answer_host_call is not None:
        return False
    answer_host_call = answer
    host.call = run_host_callback
    host.step_back = give_up_gil
    host.step_in = take_gil
    host.forget = forget_failure
    set_host(host)
    return True


def host_callback_handlers():
    """Return the addresses of the handlers of host callbacks, by custom-call target."""
    return {
        kHostCallbackTargets[i].decode(): <uintptr_t>host_callback_handler for i in range(kHostCallbackTargets.size())
    }


cdef cpp_bool run_host_callback(const HostCall& call, HostCallError& error, uint64_t& failure) noexcept with gil:
    try:
        arguments = tuple([argument_array(call.argument(i)) for i in range(call.num_arguments())])
        expected = tuple([expected_array(call.result(i)) for i in range(call.num_results())])
        results = answer_host_call(call.function(), arguments, expected)
        if len(results) == len(expected) and type(results) is tuple:
            for i in range(len(expected)):
                copy_result(results[i], call.result(i))
            return True
        write_error(error, results.text)
        (&failure)[0] = remember(results.error)
    except BaseException as unexpected:
        write_error(error, f"{type(unexpected).__name__} around a host callback: {unexpected}")
    return False


cdef object argument_array(const HostArray& given):
    if given.element_type == TOKEN:
        return None
    array = memory.aligned_empty(shape_of(given), dtypes.dtype_of(given.element_type))
    # A copy: the plugin reuses its memory, and the function may keep its arguments.
    if given.size_bytes > 0:
        memcpy(PyArray_DATA(<PyArrayObject*><PyObject*>array), given.data, given.size_bytes)
    array.flags.writeable = False
    return array


cdef object expected_array(const HostArray& wanted):
    if wanted.element_type == TOKEN:
        return None, ()
    return dtypes.dtype_of(wanted.element_type), shape_of(wanted)


cdef tuple shape_of(const HostArray& array):
    return tuple([array.dimensions[k] for k in range(array.dimensions.size())])


cdef int copy_result(object result, const HostArray& wanted) except -1:
    if result is None or wanted.size_bytes == 0:
        return 0
    if not isinstance(result, cnp.ndarray) or <size_t>result.nbytes != wanted.size_bytes:
        raise errors.Error("its results were not checked")
    memcpy(wanted.data, PyArray_DATA(<PyArrayObject*><PyObject*>result), wanted.size_bytes)
    return 0


cdef uint64_t remember(object failure) except? 0:
    """Keeps an exception for a call in flight from Python; returns its number, 0 without such a call."""
    global last_failure
    if watched_calls == 0:
        return 0
    last_failure += 1
    failures[last_failure] = failure
    if len(failures) > MAX_FAILURES:
        del failures[next(iter(failures))]
    return last_failure


cdef void forget_failure(uint64_t failure) noexcept with gil:
    failures.pop(failure, None)


cdef int write_error(HostCallError& error, str text) except -1:
    cdef bytes encoded = text.encode("utf-8", "replace")[:error.size() - 1]
    memcpy(error.data(), <const char*>encoded, len(encoded))
    error.data()[len(encoded)] = 0
    return 0


cdef void begin_watched_call() noexcept:
    global watched_calls
    watched_calls += 1
    expect_failure()


cdef int end_watched_call(int result) except -1:
    """Ends a watched call; if it failed, raises its error with the callback's exception as cause."""
    global watched_calls
    failed = None
    cause = failures.pop(take_failure(), None)
    if result != 0:
        try:
            raise_error()
        except errors.Error as error:
            failed = error
    watched_calls -= 1
    if watched_calls == 0:
        failures.clear()
    if failed is not None:
        raise failed from cause
    return 0
