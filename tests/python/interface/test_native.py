# SPDX-License-Identifier: Apache-2.0
"""Executing from C: memory at any address, arrays of every shape and type, and wrong inputs."""

from __future__ import annotations

import ctypes
import dataclasses
import random
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.mlir.dialects import stablehlo

import cyxla
from cpu_plugins import CPU_LIBRARIES
from cyxla import _runtime, dtypes
from cyxla.dtypes import ElementType
from support.arrays import Array, addresses, build, described, empty_outputs, place
from support.native import run_tests_on_plugin

OFFSETS = (0, 1, 4, 16, 32, 63)


@pytest.fixture(scope="module")
def line() -> cyxla.Executable:
    """(x, y) -> (2x + y, sum of x), on 10 floats."""
    return build(lambda x, y: (2 * x + y, x.sum()), ((10,), "f4"), ((10,), "f4"))


def execute(
    c_table: ModuleType,
    executable: cyxla.Executable,
    arrays: Sequence[Array],
    *,
    zero_copy: bool = True,
    output_offset: int = 0,
) -> list[Array]:
    """Execute once, check that it succeeds and leaves the inputs alone, and return the outputs."""
    before = [array.tobytes() for array in arrays]
    outputs = empty_outputs(executable, output_offset)
    done = c_table.execute(executable, described(arrays), addresses(outputs), zero_copy)
    assert done == (0, "")
    assert [array.tobytes() for array in arrays] == before
    return outputs


@pytest.mark.parametrize("zero_copy", [False, True])
@pytest.mark.parametrize("size", [10, 16384])
def test_memory_at_any_offset_is_read_and_written_right(
    c_table: ModuleType, size: int, zero_copy: bool
) -> None:
    # Two of the outputs could be the input itself.
    executable = build(lambda x: (x, x.reshape(2, -1), 2 * x), ((size,), "f4"))
    for offset in OFFSETS:
        x = place(np.zeros(size, "f4"), offset)
        for step in range(4):
            x[:] = np.arange(size) + 1000 * step + offset
            first, second, doubled = execute(
                c_table, executable, [x], zero_copy=zero_copy, output_offset=OFFSETS[step]
            )
            np.testing.assert_array_equal(first, x)
            np.testing.assert_array_equal(second.ravel(), x)
            np.testing.assert_array_equal(doubled, 2 * x)


def test_any_order_of_arrays_and_ways_gives_the_values_of_the_moment(
    c_table: ModuleType, line: cyxla.Executable
) -> None:
    choose = random.Random(1)
    arrays = [place(np.zeros(10, "f4"), offset) for offset in (0, 0, 0, 4, 1)]
    for _ in range(500):
        x, y = choose.choice(arrays), choose.choice(arrays)
        choose.choice(arrays)[:] = np.arange(10) + choose.randrange(1000)
        expected = 2 * x + y, x.sum()
        got = execute(c_table, line, [x, y], zero_copy=choose.random() < 0.8)
        np.testing.assert_array_equal(got[0], expected[0])
        np.testing.assert_array_equal(got[1], expected[1])


def test_memory_that_was_freed_and_is_used_again_is_read_anew(c_table: ModuleType) -> None:
    executable = build(lambda x: x + 1, ((1024,), "f4"))
    for value in range(50):
        address = c_table.aligned_memory(4096)
        x = np.ctypeslib.as_array((ctypes.c_float * 1024).from_address(address))
        x[:] = value
        (result,) = execute(c_table, executable, [x])
        c_table.free_aligned(address)
        np.testing.assert_array_equal(result, np.full(1024, value + 1, "f4"))


def test_an_output_may_lie_over_an_input_that_is_copied(
    c_table: ModuleType, line: cyxla.Executable
) -> None:
    for offset in OFFSETS:
        x = place(np.zeros(10, "f4"), offset)
        for step in range(3):
            x[:] = np.arange(10) + step
            expected = 3 * x
            outputs = addresses([x, None])
            assert c_table.execute(line, described([x, x]), outputs, False) == (0, "")
            np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("zero_copy", [False, True])
def test_an_output_without_destination_is_dropped(
    c_table: ModuleType, line: cyxla.Executable, zero_copy: bool
) -> None:
    x = place(np.arange(10, dtype="f4"))
    for keep_first, keep_second in ((True, False), (False, True), (False, False)):
        first, second = empty_outputs(line)
        outputs = addresses([first if keep_first else None, second if keep_second else None])
        assert c_table.execute(line, described([x, x]), outputs, zero_copy) == (0, "")
        assert bool((first == 3 * x).all()) == keep_first
        assert bool(second == 45) == keep_second


def test_nothing_is_written_beside_an_output(c_table: ModuleType) -> None:
    executable = build(lambda x: (x * 2, (x > 1)[:3]), ((5,), "f4"))
    x = place(np.arange(5, dtype="f4"))
    sizes = executable.output_bytes
    memory = [place(np.full(size + 64, 7, np.uint8), 3) for size in sizes]
    outputs = [array[32:] for array in memory]
    assert c_table.execute(executable, described([x]), addresses(outputs), True) == (0, "")
    for array, size in zip(memory, sizes, strict=True):
        assert (array[:32] == 7).all()
        assert (array[32 + size :] == 7).all()
    assert memory[0][32:52].tobytes() == (x * 2).tobytes()
    assert memory[1][32:35].tolist() == [0, 0, 1]


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("zero_copy", [False, True])
def test_a_prepared_call_reads_and_writes_the_same_memory_each_time(
    c_table: ModuleType, line: cyxla.Executable, zero_copy: bool, offset: int
) -> None:
    x, y = (place(np.zeros(10, "f4"), offset) for _ in range(2))
    outputs = empty_outputs(line, offset)
    call = c_table.prepare(line, described([x, y]), addresses(outputs), zero_copy)
    assert call != 0
    for step in range(5):
        x[:] = np.arange(10) + step
        y[:] = 100 * step
        assert c_table.call(call, on_thread=step % 2 == 1) == (0, "")
        np.testing.assert_array_equal(outputs[0], 2 * x + y)
        assert outputs[1] == x.sum()
    c_table.discard(call)


def test_a_prepared_call_drops_outputs_without_destination(
    c_table: ModuleType, line: cyxla.Executable
) -> None:
    x = place(np.ones(10, "f4"))
    _, total = empty_outputs(line)
    call = c_table.prepare(line, described([x, x]), addresses([None, total]), True)
    assert c_table.call(call) == (0, "")
    assert total == 10
    c_table.discard(call)


@pytest.fixture(scope="module", params=["pjrt", "direct"])
def routed_line(request: pytest.FixtureRequest) -> cyxla.Executable:
    """As `line`, on each of the two routes."""
    types = [jax.ShapeDtypeStruct((10,), "f4")] * 2
    program = cyxla.lower(lambda x, y: (2 * x + y, x.sum()), types, name="line")
    return cyxla.compile_program(program, route=request.param)[0]


@pytest.mark.parametrize("zero_copy", [False, True])
def test_a_prepared_call_is_bound_to_other_memory(
    c_table: ModuleType, routed_line: cyxla.Executable, zero_copy: bool
) -> None:
    x, y = (place(np.zeros(10, "f4")) for _ in range(2))
    outputs = empty_outputs(routed_line)
    call = c_table.prepare(routed_line, described([x, y]), addresses(outputs), zero_copy)
    bound = [x, y, *outputs]
    choose = random.Random(2)
    for step in range(200):
        index = choose.randrange(4)
        bound[index] = place(np.zeros(() if index == 3 else 10, "f4"), choose.choice(OFFSETS))
        if index < 2 and choose.random() < 0.2:
            bound[index] = bound[1 - index]  # both inputs are one array
        assert c_table.rebind(call, index, bound[index].ctypes.data) == (0, "")
        x, y, line, total = bound
        x[:] = np.arange(10) + step
        y[:] = 3 * step + x
        expected = 2 * x + y, x.sum()
        assert c_table.call(call, on_thread=step % 3 == 0) == (0, "")
        np.testing.assert_array_equal(line, expected[0])
        assert total == expected[1]
    c_table.discard(call)


def test_an_output_is_bound_over_an_input_that_is_copied(
    c_table: ModuleType, routed_line: cyxla.Executable
) -> None:
    memory = place(np.zeros(40, "f4"))
    x, y = memory[:10], place(np.ones(10, "f4"))
    line, total = empty_outputs(routed_line)
    call = c_table.prepare(routed_line, described([x, y]), addresses([line, total]), False)
    for start in (0, 1, 3, 9, 16, 0):
        x[:] = np.arange(10)
        expected = 2 * x + y
        assert c_table.rebind(call, 2, memory[start:].ctypes.data) == (0, "")
        assert c_table.call(call) == (0, "")
        np.testing.assert_array_equal(memory[start : start + 10], expected)
        assert total == 45
    c_table.discard(call)


def test_a_bound_output_may_be_dropped_and_other_nulls_are_refused(
    c_table: ModuleType, routed_line: cyxla.Executable
) -> None:
    x = place(np.arange(10, dtype="f4"))
    line, total = empty_outputs(routed_line)
    call = c_table.prepare(routed_line, described([x, x]), addresses([line, total]), True)
    untouched = line.copy()
    assert c_table.rebind(call, 2, 0) == (0, "")
    for index, text in (
        (0, "input 0 of the program line has 40 bytes, but its data is NULL"),
        (4, "cannot rebind array 4 of the program line: it has 2 inputs and 2 outputs; the index"),
        (-1, f"cannot rebind array {2**64 - 1} of the program line"),
    ):
        c_table.clear_error()
        result, message = c_table.rebind(call, index, 0)
        assert (result, text in message) == (-1, True)
        assert c_table.last_error_code() == 2
    assert c_table.call(call) == (0, "")
    assert line.tobytes() == untouched.tobytes()
    assert total == 45
    c_table.discard(call)


def test_the_last_error_is_cleared_for_this_thread_alone(
    c_table: ModuleType, line: cyxla.Executable
) -> None:
    c_table.execute(line, None, None, True)
    before = cyxla.error_info()
    assert c_table.last_error_code() == 2
    assert c_table.last_error(1024)[0] > 0
    c_table.clear_error()
    assert c_table.last_error_code() == 0
    assert c_table.last_error(1024)[0] == 0
    assert cyxla.error_info() == before


def test_no_prepared_call_is_an_error_to_call_and_none_to_discard(c_table: ModuleType) -> None:
    assert c_table.call_null() == -1
    length, text = c_table.last_error(1024)
    assert text[:length] == b"the prepared call is NULL"
    c_table.discard(0)


SHAPES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "0-d": (lambda s: s * 2, [np.float32(3)], [np.float32(6)]),
    "empty": (lambda e: (e.sum(), e + 1), [np.zeros((0, 4), "f4")], [np.float32(0), (0, 4)]),
    "empty output": (lambda x: jnp.zeros((0, 3)), [np.ones(2, "f4")], [(0, 3)]),
    "no inputs": (lambda: jnp.arange(2.0), [], [np.array([0, 1], "f4")]),
    "no outputs": (lambda x: (), [np.ones(3, "f4")], []),
    "nothing": (lambda: (), [], []),
    "duplicated": (lambda s: (s, s, s), [np.float32(3)], [np.float32(3)] * 3),
}


@pytest.mark.parametrize("zero_copy", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_at_the_edge(c_table: ModuleType, shape: str, zero_copy: bool) -> None:
    function, inputs, expected = SHAPES[shape]
    arrays = [np.asarray(value) for value in inputs]
    executable = build(function, *((array.shape, array.dtype) for array in arrays))
    got = execute(c_table, executable, arrays, zero_copy=zero_copy)
    for array, value in zip(got, expected, strict=True):
        if isinstance(value, tuple):
            assert array.shape == value
        else:
            np.testing.assert_array_equal(array, value)
    # Empty arrays and lists may be NULL.
    bare_inputs = [
        (address if count else 0, type_, count) for address, type_, count in described(arrays)
    ]
    outputs = [
        address if array.size else 0 for address, array in zip(addresses(got), got, strict=True)
    ]
    assert c_table.execute(executable, bare_inputs or None, outputs or None, zero_copy) == (0, "")
    call = c_table.prepare(executable, bare_inputs or None, outputs or None, zero_copy)
    assert c_table.call(call, repeat=3) == (0, "")
    c_table.discard(call)


@pytest.mark.parametrize("size", [10, 16384])
@pytest.mark.parametrize("offset", [0, 4])
def test_donated_inputs_stay_the_callers(c_table: ModuleType, offset: int, size: int) -> None:
    donating = jax.jit(lambda x, y: (x + y, x * 2), donate_argnums=(0, 1))
    executable = build(donating, ((size,), "f4"), ((size,), "f4"))
    x = place(np.arange(size, dtype="f4"), offset)
    for _ in range(4):
        total, doubled = execute(c_table, executable, [x, x])
        np.testing.assert_array_equal(total, 2 * x)
        np.testing.assert_array_equal(doubled, 2 * x)
    call = c_table.prepare(executable, described([x, x]), addresses([total, doubled]), True)
    keep = x.copy()
    assert c_table.call(call, repeat=3) == (0, "")
    c_table.discard(call)
    np.testing.assert_array_equal(x, keep)


def donating_module(form: str) -> bytes:
    """A program x -> x + x that donates its input, unlike programs of `lower`."""
    lowered = jax.jit(lambda x: x + x, donate_argnums=0).lower(jax.ShapeDtypeStruct((16,), "f4"))
    if form == "text":
        text = lowered.as_text()
        assert "tf.aliasing_output" in text
        return text.encode()
    versions = (cyxla.runtime_info().stablehlo_version, stablehlo.get_current_version())
    version = min(versions, key=lambda version: [int(part) for part in version.split(".")])
    module = lowered.compiler_ir("stablehlo")
    return bytes(stablehlo.serialize_portable_artifact(module, version, allow_other_dialects=True))


@pytest.mark.parametrize("form", ["text", "bytecode"])
def test_inputs_of_a_donating_program_stay_the_callers(c_table: ModuleType, form: str) -> None:
    program = cyxla.lower(lambda x: 2 * x, [jax.ShapeDtypeStruct((16,), "f4")])
    program = dataclasses.replace(program, stablehlo=donating_module(form))
    executable, _ = cyxla.compile_program(program, route="pjrt")
    x = place(np.arange(16, dtype="f4"))
    for _ in range(4):
        (doubled,) = execute(c_table, executable, [x])
        np.testing.assert_array_equal(doubled, 2 * x)
    (doubled,) = empty_outputs(executable)
    call = c_table.prepare(executable, described([x]), addresses([doubled]), True)
    assert c_table.call(call, repeat=3) == (0, "")
    c_table.discard(call)
    assert x.tolist() == list(range(16))
    assert doubled.tolist() == list(range(0, 32, 2))


WHOLE_BYTE_TYPES = [type_ for type_ in ElementType if _runtime.itemsize(type_) > 0]


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("element_type", WHOLE_BYTE_TYPES, ids=lambda type_: type_.name)
def test_every_element_type(c_table: ModuleType, element_type: ElementType, offset: int) -> None:
    dtype = dtypes.dtype_of(element_type)
    executable = build(lambda x: (x, x[::-1]), ((16,), dtype))
    assert executable.input_types == (cyxla.ArrayType(element_type, (16,)),)
    # Bytes that are not NaN in any type, because NaN need not keep its bits.
    pattern = np.random.default_rng(0).integers(0, 112, 16 * dtype.itemsize, np.uint8)
    x = place((pattern % 2 if dtype == np.bool_ else pattern).view(dtype), offset)
    same, reversed_ = execute(c_table, executable, [x])
    assert same.tobytes() == x.tobytes()
    assert reversed_.tobytes() == x[::-1].tobytes()


F32, F64 = int(ElementType.F32), int(ElementType.F64)
WRONG_INPUTS = {
    "type": (1, (8, F64, 10), "input 1 of the program line must have element type F32 (11)"),
    "unknown type": (0, (8, 99, 10), "not unknown type (99)"),
    "negative type": (0, (8, -1, 10), "not unknown type (-1)"),
    "elements": (1, (8, F32, 9), "input 1 of the program line must have 10 elements, not 9"),
    "bytes": (0, (8, F32, 40), "must have 10 elements, not 40"),
    "no data": (1, (0, F32, 10), "input 1 of the program line has 40 bytes, but its data is NULL"),
}


@pytest.mark.parametrize("wrong", WRONG_INPUTS)
def test_a_wrong_input_is_refused_before_anything_is_read(c_table: ModuleType, wrong: str) -> None:
    index, entry, text = WRONG_INPUTS[wrong]
    line = build(lambda x, y: (2 * x + y, x.sum()), ((10,), "f4"), ((10,), "f4"), name="line")
    x = place(np.ones(10, "f4"))
    inputs = described([x, x])
    inputs[index] = entry
    outputs = empty_outputs(line)
    untouched = [output.tobytes() for output in outputs]
    before = cyxla.error_info().count
    for count, on_thread in enumerate((False, True), start=1):
        failures, message = c_table.execute(
            line, inputs, addresses(outputs), True, on_thread=on_thread
        )
        assert failures == 1
        assert text in message
        assert cyxla.error_info() == (before + count, message)
    assert c_table.prepare(line, inputs, addresses(outputs), True) == 0
    assert cyxla.error_info() == (before + 3, message)
    assert [output.tobytes() for output in outputs] == untouched
    execute(c_table, line, [x, x])
    assert cyxla.error_info().count == before + 3


def test_lists_that_are_null_are_refused(c_table: ModuleType, line: cyxla.Executable) -> None:
    x = place(np.ones(10, "f4"))
    outputs = addresses(empty_outputs(line))
    failures, message = c_table.execute(line, None, outputs, True)
    assert (failures, "takes 2 inputs, but `inputs` is NULL" in message) == (1, True)
    failures, message = c_table.execute(line, described([x, x]), None, True)
    assert (failures, "has 2 outputs, but `outputs` is NULL" in message) == (1, True)
    failures, message = c_table.execute(0, described([x, x]), outputs, True)
    assert (failures, "the program spec is NULL" in message) == (1, True)


def test_last_error_belongs_to_the_thread(c_table: ModuleType, line: cyxla.Executable) -> None:
    x = place(np.ones(10, "f4"))
    outputs = addresses(empty_outputs(line))
    _, own = c_table.execute(line, described([x, x[:7]]), outputs, True)
    _, other = c_table.execute(line, described([x[:3], x]), outputs, True, on_thread=True)
    assert "not 7" in own
    assert "not 3" in other
    length, text = c_table.last_error(1024)
    assert (length, text[:length].decode(), text[length]) == (len(own), own, 0)
    assert cyxla.error_info().message == other


def test_last_error_is_cut_to_the_buffer(c_table: ModuleType, line: cyxla.Executable) -> None:
    _, message = c_table.execute(line, None, None, True)
    encoded = message.encode()
    for size in (1, 2, 10, len(encoded), len(encoded) + 1):
        length, text = c_table.last_error(size)
        kept = min(size - 1, len(encoded))
        assert length == len(encoded)
        assert text[: kept + 1] == encoded[:kept] + b"\0"
        assert set(text[kept + 1 :]) == {ord("#")}
    assert c_table.last_error(0) == (len(encoded), b"#" * 1024)
    assert c_table.last_error(None) == (len(encoded), b"")


@pytest.mark.parametrize("plugin", CPU_LIBRARIES[1:])
def test_this_file_on_other_plugins(plugin: str) -> None:
    # A process has one plugin, so the tests above run again in another.
    run_tests_on_plugin(plugin, __file__, "not other_plugins", seconds=250)
