# SPDX-License-Identifier: Apache-2.0
"""The rest of the C interface: importing the table, lifetimes and errors; and the C++ classes."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import gc
import pickle
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest

import cyxla
from cpu_plugins import CPU_LIBRARIES, variables
from cyxla import _runtime, dtypes
from cyxla.dtypes import ElementType
from support.arrays import ALIGNMENT, addresses, build, described, place
from support.native import import_module, run_with_modules

F32 = int(ElementType.F32)


@pytest.fixture(scope="module")
def cpp(modules: Path) -> ModuleType:
    """The module cpp_classes."""
    return import_module(modules, "cpp_classes")


def drop(held: list[cyxla.Executable]) -> None:
    """Drop the only reference to an Executable."""
    watched = weakref.ref(held.pop())
    gc.collect()
    assert watched() is None


def test_a_retained_spec_outlives_the_executable(c_table: ModuleType) -> None:
    held = [build(lambda x: x + 5, ((4,), "f4"))]
    spec = c_table.program_spec(held[0])
    for _ in range(2):
        c_table.retain(spec)
    drop(held)
    x, y = place(np.arange(4, dtype="f4")), place(np.zeros(4, "f4"))
    for on_thread in (False, True):
        y[:] = 0
        done = c_table.execute(spec, described([x]), addresses([y]), True, on_thread=on_thread)
        assert done == (0, "")
        assert y.tolist() == [5, 6, 7, 8]
        c_table.release(spec)


def test_a_prepared_call_outlives_the_executable(c_table: ModuleType) -> None:
    x, y = place(np.arange(4, dtype="f4")), place(np.zeros(4, "f4"))
    held = [build(lambda x: x + 5, ((4,), "f4"))]
    call = c_table.prepare(held[0], described([x]), addresses([y]), True)
    drop(held)
    assert c_table.call(call) == (0, "")
    assert y.tolist() == [5, 6, 7, 8]
    c_table.discard(call)


def test_only_an_executable_has_a_spec(c_table: ModuleType) -> None:
    for wrong in (None, 3, cyxla.Executable, "executable"):
        with pytest.raises(TypeError, match=f"a cyxla.Executable, got {type(wrong).__name__}"):
            c_table.program_spec(wrong)
    with pytest.raises(TypeError, match=r"a cyxla\.Executable, got NULL"):
        c_table.program_spec_of_null()


def test_the_spec_has_the_signature(c_table: ModuleType) -> None:
    executable = build(
        lambda a, b: ((a @ b).sum(axis=0), b.shape[0] > 1), ((2, 3), "f4"), ((3, 5), "f4")
    )
    spec = c_table.describe(c_table.program_spec(executable))
    assert spec == {
        "size_is_known": True,
        "flags": 0,
        "route": {"pjrt": 0, "direct": 1}[executable.route],
        "input_types": [F32, F32],
        "input_elements": [6, 15],
        "input_bytes": [24, 60],
        "output_types": [F32, int(ElementType.PRED)],
        "output_elements": [5, 1],
        "output_bytes": [20, 1],
        "input_dimensions": [[2, 3], [3, 5]],
        "output_dimensions": [[5], []],
        "input_names": ["a", "b"],
        "output_names": ["result[0]", "result[1]"],
        "name": executable.name,
    }


def test_the_spec_has_the_names_of_the_program(c_table: ModuleType, tmp_path: Path) -> None:
    arguments = [
        {"pré": jax.ShapeDtypeStruct((2,), "f4"), "b": (jax.ShapeDtypeStruct((), "f4"),)},
        jax.ShapeDtypeStruct((2, 1, 3), "f4"),
    ]
    program = cyxla.lower(
        lambda tree, y: {"größe": tree["pré"] * tree["b"][0], "y": y}, arguments, name="naïve"
    )
    names = [array.name for array in program.inputs]
    assert names == ["tree['b'][0]", "tree['pré']", "y"]
    for _ in range(2):  # compiled, then from the cache
        executable, _ = cyxla.compile_program(program, cache=tmp_path)
        cyxla_spec = c_table.describe(c_table.program_spec(executable))
        assert cyxla_spec["input_names"] == names
        assert cyxla_spec["output_names"] == [array.name for array in program.outputs]
        assert cyxla_spec["output_names"] == ["result['größe']", "result['y']"]
        assert cyxla_spec["input_dimensions"] == [[], [2], [2, 1, 3]]
        assert cyxla_spec["name"] == "naïve"
    assert executable.statistics.from_cache


def test_names_that_are_not_unicode_have_backslashes(c_table: ModuleType) -> None:
    program = cyxla.lower(lambda x: x + 1, [jax.ShapeDtypeStruct((2,), "f4")])
    program = dataclasses.replace(
        program,
        inputs=(program.inputs[0]._replace(name="\udc80"),),
        outputs=(program.outputs[0]._replace(name="é"),),
    )
    executable, _ = cyxla.compile_program(program)
    spec = c_table.describe(c_table.program_spec(executable))
    assert (spec["input_names"], spec["output_names"]) == ([r"\udc80"], ["é"])


def test_the_flag_of_programs_that_need_python(c_table: ModuleType) -> None:
    program = cyxla.lower(lambda x: x + 1, [jax.ShapeDtypeStruct((2,), "f4")])
    executable, _ = cyxla.compile_program(dataclasses.replace(program, needs_python=True))
    assert c_table.describe(c_table.program_spec(executable))["flags"] == 1


# Bytes of the installed structs. The table is two sizes and a version, and fourteen functions.
TABLE_SIZE = 16 * ctypes.sizeof(ctypes.c_void_p)
SPEC_SIZE = 18 * ctypes.sizeof(ctypes.c_void_p)


class Forged(ctypes.Structure):
    """The head of the table, which the import checks."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("abi_version", ctypes.c_int32),
        ("spec_size", ctypes.c_uint32),
    )


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Replace the table's capsule by one with another version and other sizes."""
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    kept: list[object] = []

    def replace(
        size: int,
        version: int,
        name: bytes | None = b"cyxla._runtime._C_API",
        spec_size: int = SPEC_SIZE,
    ) -> None:
        table = ctypes.create_string_buffer(4096)
        Forged.from_buffer(table).struct_size = size
        Forged.from_buffer(table).abi_version = version
        Forged.from_buffer(table).spec_size = spec_size
        kept.extend((table, name))
        capsule = new_capsule(ctypes.addressof(table), name, None)
        monkeypatch.setattr(_runtime, "_C_API", capsule)

    yield replace
    monkeypatch.undo()


def test_the_table_is_the_installed_one(c_table: ModuleType) -> None:
    assert c_table.import_table() == (_runtime.ABI_VERSION, TABLE_SIZE, SPEC_SIZE)


def test_the_module_may_be_the_first_to_need_cyxla(modules: Path) -> None:
    printed = run_with_modules(modules, "import c_table; print(c_table.import_table())")
    assert printed == f"({_runtime.ABI_VERSION}, {TABLE_SIZE}, {SPEC_SIZE})\n"


def test_a_cyxla_that_is_not_installed_is_named(modules: Path) -> None:
    printed = run_with_modules(
        modules,
        """
        import sys
        sys.modules["cyxla"] = None
        try:
            import c_table
        except ImportError as error:
            print("ImportError", "cyxla" in str(error))
        """,
    )
    assert printed == "ImportError True\n"


# The table of ABI version 1 was shorter, and where `spec_size` is it had padding.
@pytest.mark.parametrize(
    ("version", "size", "spec_size"),
    [(1, 104, 0), (1, TABLE_SIZE, SPEC_SIZE), (_runtime.ABI_VERSION + 1, TABLE_SIZE, SPEC_SIZE)],
)
def test_a_table_of_another_abi_version_is_refused(
    c_table: ModuleType, forge: Any, version: int, size: int, spec_size: int
) -> None:
    forge(size, version, spec_size=spec_size)
    with pytest.raises(ImportError) as caught:
        c_table.import_table()
    assert str(caught.value) == (
        f"this module was compiled for cyxla ABI version {_runtime.ABI_VERSION}, the installed"
        f" cyxla has ABI version {version}; rebuild the module against the installed cyxla"
    )


@pytest.mark.parametrize(("less", "spec_less"), [(1, 0), (0, 1), (24, 72)])
def test_a_shorter_table_or_spec_is_refused(
    c_table: ModuleType, forge: Any, less: int, spec_less: int
) -> None:
    forge(TABLE_SIZE - less, _runtime.ABI_VERSION, spec_size=SPEC_SIZE - spec_less)
    with pytest.raises(ImportError) as caught:
        c_table.import_table()
    assert str(caught.value) == (
        f"this module was compiled for a newer cyxla of ABI version {_runtime.ABI_VERSION}"
        f" (cyxla_api of {TABLE_SIZE} bytes, cyxla_program_spec of {SPEC_SIZE}), the installed"
        f" cyxla has {TABLE_SIZE - less} and {SPEC_SIZE - spec_less} bytes; upgrade cyxla, or"
        " rebuild the module against the installed cyxla"
    )


def test_a_longer_table_or_spec_is_accepted(c_table: ModuleType, forge: Any) -> None:
    for more, spec_more in ((8, 0), (0, 8), (800, 80)):
        forge(TABLE_SIZE + more, _runtime.ABI_VERSION, spec_size=SPEC_SIZE + spec_more)
        found = (_runtime.ABI_VERSION, TABLE_SIZE + more, SPEC_SIZE + spec_more)
        assert c_table.import_table() == found


def test_an_invalid_table_is_refused(
    c_table: ModuleType, forge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (b"another.capsule", b"", None):
        forge(TABLE_SIZE, _runtime.ABI_VERSION, name=name)
        with pytest.raises(ImportError, match=r"no C function table.*reinstall"):
            c_table.import_table()
    for no_capsule in (None, 0, b"cyxla._runtime._C_API"):
        monkeypatch.setattr(_runtime, "_C_API", no_capsule)
        with pytest.raises(ImportError, match=r"no C function table.*reinstall"):
            c_table.import_table()
    monkeypatch.delattr(_runtime, "_C_API")
    with pytest.raises(ImportError, match=r"no C function table.*reinstall"):
        c_table.import_table()


def test_itemsizes_are_those_of_numpy(c_table: ModuleType) -> None:
    whole_bytes = [type_ for type_ in ElementType if c_table.itemsize(type_) > 0]
    assert len(whole_bytes) == 23
    for element_type in whole_bytes:
        assert c_table.itemsize(element_type) == dtypes.dtype_of(element_type).itemsize
    assert [c_table.itemsize(number) for number in (0, 21, 23, 29, 30, 1000, -1)] == [0] * 7


def test_aligned_memory(c_table: ModuleType) -> None:
    blocks = [c_table.aligned_memory(size) for size in (0, 1, 63, 64, 1000, 1 << 20)]
    assert all(address != 0 and address % ALIGNMENT == 0 for address in blocks)
    assert len(set(blocks)) == len(blocks)
    ctypes.memset(blocks[-1], 1, 1 << 20)
    for address in blocks:
        c_table.free_aligned(address)
    c_table.free_aligned(0)
    assert c_table.aligned_memory(2**64 - 1) == 0
    assert c_table.aligned_memory(2**62) == 0


@pytest.mark.parametrize(
    ("plugin", "options"),
    [(CPU_LIBRARIES[0], {"asynchronous": True}), *((plugin, {}) for plugin in CPU_LIBRARIES)],
)
def test_an_execution_has_ended_when_it_returns(
    modules: Path, plugin: str, options: dict[str, bool]
) -> None:
    # A plugin may run a large program on its own threads.
    run_with_modules(
        modules,
        f"""
        import numpy as np
        import cyxla, jax, jax.numpy as jnp
        import c_table
        from support.arrays import addresses, build, described, place

        def function(x):
            return x.sum(), jax.lax.fori_loop(0, 60, lambda i, a: jnp.tanh(a @ x), x)

        cyxla.initialize(options={options})
        executable = build(function, ((200, 200), "f4"))
        reference = jax.jit(function)
        start = np.random.default_rng(0).normal(size=(200, 200)).astype("f4") / 14
        x, total, end = place(start), place(np.zeros((), "f4")), place(np.zeros_like(start))
        outputs = addresses([total, end])
        for zero_copy in (True, False, True, True):
            for factor in (1, 2, 3):
                x[:] = start / factor
                expected = reference(x.copy())
                total[...], end[:] = np.nan, np.nan
                assert c_table.execute(executable, described([x]), outputs, zero_copy) == (0, "")
                got = total.copy(), end.copy()
                x[:] = np.nan
                np.testing.assert_allclose(got[0], expected[0], rtol=1e-3)
                np.testing.assert_allclose(got[1], expected[1], rtol=1e-3, atol=1e-4)
        """,
        env=variables(plugin),
    )


@pytest.fixture(scope="module")
def weighted() -> cyxla.Executable:
    """(x, a) -> a times the sum of x, on 5 doubles and one."""
    return build(lambda x, a: a * x.sum(), ((5,), "f8"), ((), "f8"))


def test_cpp_program(cpp: ModuleType, weighted: cyxla.Executable) -> None:
    assert cpp.execute(weighted, 0.5) == 5.0
    assert cpp.sum_prepared(weighted, 10) == 5 * 55
    with pytest.raises(TypeError, match=r"a cyxla\.Executable, got int"):
        cpp.execute(3, 0.5)


def test_cpp_program_outlives_the_executable(cpp: ModuleType) -> None:
    held = [build(lambda x, a: a * x.sum(), ((5,), "f8"), ((), "f8"))]
    cpp.keep(held[0])
    drop(held)
    assert cpp.execute_kept(2.0) == 20.0
    cpp.forget()


def test_cpp_errors(cpp: ModuleType, weighted: cyxla.Executable) -> None:
    with pytest.raises(ValueError, match="takes 2 inputs and gives 1 output, not 3 and 1"):
        cpp.execute_with_inputs(weighted, 3)
    with pytest.raises(
        RuntimeError, match=r"input 0 .* must have element type F64 \(12\), not F32"
    ):
        cpp.execute_with_inputs(weighted, 2)


def test_cpp_element_types_are_pjrts(cpp: ModuleType) -> None:
    numbers = cpp.element_types()
    assert numbers == {name: ElementType[name].value for name in numbers}
    assert len(numbers) == 13


def test_an_executable_needs_a_program() -> None:
    executable = build(lambda x: x + 1, ((2,), "f4"))
    for class_, maker in (
        (cyxla.Executable, "compile_program"),
        (cyxla.BoundCall, r"Executable\.bind"),
    ):
        for make in (class_, lambda c=class_: c.__new__(c)):
            with pytest.raises(TypeError, match=rf"is made by cyxla\.{maker}\(\)"):
                make()
        with pytest.raises(TypeError, match="not an acceptable base type"):
            type("Derived", (class_,), {"__init__": lambda self: None})
    for reuse in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(
            TypeError, match="pickle the Program and compile it in the other process"
        ):
            reuse(executable)
        with pytest.raises(TypeError, match="cannot be pickled or copied; bind anew"):
            reuse(executable.bind([np.zeros(2, "f4")]))


@pytest.mark.parametrize("wrong", [None, 3, "x", cyxla.Executable, object()])
def test_functions_of_the_class_want_an_executable(wrong: Any) -> None:
    x = np.zeros(2, "f4")
    bound = build(lambda x: x + 1, ((2,), "f4")).bind([x])
    for given in (wrong, bound):
        for name, arguments in (("run", ([x],)), ("bind", ([x],)), ("warm_up", ())):
            with pytest.raises(TypeError, match=f"Executable.{name} needs a cyxla.Executable as"):
                getattr(cyxla.Executable, name)(given, *arguments)
