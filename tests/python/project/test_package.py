# SPDX-License-Identifier: Apache-2.0
"""The public names of the package, which are loaded lazily."""

from __future__ import annotations

import ast
import importlib
import inspect
import operator
import pickle
from importlib import metadata
from pathlib import Path
from typing import get_args

import jax
import jax.numpy as jnp
import pytest

import cyxla
from child_process import run_code
from cyxla import _runtime

_STUB = ast.parse(Path(cyxla.__file__).with_suffix(".pyi").read_text())


def test_every_public_name_can_be_had() -> None:
    for name in cyxla.__all__:
        assert getattr(cyxla, name) is not None
    assert dir(cyxla) == cyxla.__all__ == sorted(cyxla.__all__)
    assert len(set(cyxla.__all__)) == len(cyxla.__all__)


def test_type_checkers_see_the_same_names_in_the_same_modules() -> None:
    imported = {
        alias.name: node.module
        for node in ast.walk(_STUB)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cyxla.")
        for alias in node.names
    }
    assert set(imported) == set(cyxla.__all__) - {"__version__"}
    for name, module in imported.items():
        assert getattr(importlib.import_module(module), name) is getattr(cyxla, name)


def _members(body: list[ast.stmt]) -> dict[str, list[str] | None]:
    """The public names of a stub; of functions with their parameters."""
    found: dict[str, list[str] | None] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            is_property = bool(node.decorator_list)
            found[node.name] = None if is_property else [each.arg for each in parameters]
        elif isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name)
            found[node.target.id] = None
        elif isinstance(node, ast.ClassDef):
            found[node.name] = None
            for name, parameters in _members(node.body).items():
                found[f"{node.name}.{name}"] = parameters
    return {name: parameters for name, parameters in found.items() if "__" not in name}


def test_the_stub_of_the_extension_has_its_names_and_parameters() -> None:
    stub = _members(ast.parse(Path(_runtime.__file__).with_name("_runtime.pyi").read_text()).body)
    for name, parameters in stub.items():
        member = operator.attrgetter(name)(_runtime)
        if parameters is not None:
            assert list(inspect.signature(member).parameters) == parameters, name
    defined = {"ABI_VERSION"}
    for name, value in vars(_runtime).items():
        if getattr(value, "__module__", "") == _runtime.__name__ and not name.startswith("_"):
            defined.add(name)
            defined |= {f"{name}.{field}" for field in getattr(value, "_fields", ())}
    for kept in (_runtime.Executable, _runtime.BoundCall):
        defined |= {f"{kept.__name__}.{name}" for name in vars(kept) if not name.startswith("_")}
    assert stub.keys() == defined


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'cyxla' has no attribute 'nonsense'"):
        _ = cyxla.nonsense  # type: ignore[attr-defined]


def test_version_is_that_of_the_installation() -> None:
    assert cyxla.__version__ == metadata.version("cyxla")


def test_constants_are_as_documented() -> None:
    assert cyxla.PLATFORM_PREFERENCE == ("cuda", "rocm", "tpu", "cpu")
    assert cyxla.PLUGIN_ENVIRONMENT_VARIABLE == "CYXLA_PJRT_PLUGIN"
    assert cyxla.PLATFORM_ENVIRONMENT_VARIABLE == "CYXLA_PLATFORM"
    assert get_args(cyxla.OptionValue) == (bool, int, float, str, tuple[int, ...])


def test_named_tuples_are_as_documented() -> None:
    assert cyxla.Plugin._fields == ("platform", "path", "source", "create_options", "preload")
    plugin = cyxla.Plugin("cpu", Path("/p.so"), "mine")
    assert (plugin.create_options, plugin.preload) == ({}, ())
    assert cyxla.RuntimeInfo._fields == (
        "api_version",
        "platform",
        "aliased_inputs",
        "inplace_outputs",
        "plugin",
        "stablehlo_version",
        "threads",
    )
    assert cyxla.ErrorInfo._fields == ("count", "message")
    assert pickle.loads(pickle.dumps(cyxla.ErrorInfo(1, "x"))) == (1, "x")


def test_older_paths_and_pickles_are_good() -> None:
    program = cyxla.lower(jnp.sin, [jax.ShapeDtypeStruct((3,), "f4")])
    moved = {
        "cyxla.program": ("Program", "ProgramArray"),
        "cyxla.compilation": ("CompileStatistics", "compile_program"),
        "cyxla.lowering": ("lower",),
        "cyxla.ffi": ("register_ffi_target",),
        "cyxla.plugins": ("Plugin", "available_plugins", "find_plugin"),
    }
    for module, names in moved.items():
        for name in names:
            assert getattr(importlib.import_module(module), name) is getattr(cyxla, name)
    written = pickle.dumps(program, protocol=0).replace(b"cyxla.program.program", b"cyxla.program")
    written = written.replace(b"cyxla.program.signature", b"cyxla.program")
    assert b"cyxla.program\nProgram\n" in written
    assert pickle.loads(written) == program


def test_importing_the_package_imports_nothing_else() -> None:
    printed = run_code("""
        import sys
        import cyxla
        cyxla.__version__, dir(cyxla), cyxla.Error
        print(sorted(name for name in sys.modules if name.startswith("cyxla")))
        print([name for name in ("numpy", "jax", "jaxlib", "ml_dtypes") if name in sys.modules])
    """)
    assert printed == "['cyxla', 'cyxla.abi', 'cyxla.errors']\n[]\n"


def test_importing_needs_no_jax_and_lowering_says_what_to_install() -> None:
    printed = run_code("""
        import sys
        for name in ("jax", "jaxlib"):
            sys.modules[name] = None
        import cyxla
        print(len(cyxla.available_plugins()) >= 3, cyxla.runtime_info().platform)
        try:
            cyxla.lower(lambda x: x, [])
        except cyxla.LoweringError as error:
            print("pip install" in str(error))
    """)
    assert printed == "True cpu\nTrue\n"


def test_reloading_keeps_what_the_process_depends_on() -> None:
    printed = run_code(
        """
        import importlib, sys
        import jax, numpy as np, cyxla
        struct = jax.ShapeDtypeStruct((2,), np.float64)
        def called():
            program = cyxla.lower(lambda x: jax.pure_callback(lambda a: a + 1, struct, x), [struct])
            return cyxla.compile_program(program)[0].run([np.ones(2)])[0].tolist()
        assert called() == [2, 2]
        for name in sorted(name for name in sys.modules if name.split(".")[0] == "cyxla"):
            try:
                importlib.reload(sys.modules[name])
            except ImportError as error:
                print(error)
            assert called() == [2, 2], name
        try:
            cyxla.compile_program(None)
        except cyxla.ArgumentError:
            print("the same classes")
        for name in [name for name in sys.modules if name.split(".")[0] == "cyxla"]:
            del sys.modules[name]
        import cyxla
        try:
            cyxla.runtime_info()
        except cyxla.Error as error:
            print(error)
        """
    )
    refused = [
        f"cyxla.{module} cannot be reloaded: it holds state of this process, such as the loaded"
        " plugin; start a new process (restart the kernel in Jupyter) to use changed code"
        for module in (
            "errors",
            "ffi.targets",
            "plugins.client",
            "program.host_callbacks",
            "program.program",
            "runtime",
        )
    ]
    again = (
        "cyxla was imported a second time in this process, and only the first copy knows the plugin"
        " that is loaded; start a new process, and leave cyxla's modules in sys.modules"
    )
    assert printed.splitlines() == [*refused, "the same classes", again]
