# SPDX-License-Identifier: Apache-2.0
"""Modules built against cyxla: the include folders, and the error for another ABI."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cyxla
from child_process import run_code
from cyxla import _runtime, abi
from cyxla.errors import AbiError


def test_the_folder_for_the_c_compiler_has_both_headers() -> None:
    include, _ = cyxla.get_include()
    assert Path(include, "pjrt_c_api.h").is_file()
    assert Path(include, "cyxla", "cyxla.h").is_file()
    assert Path(include, "cyxla", "cyxla_import.h").is_file()


def test_the_folder_for_cython_holds_the_package() -> None:
    include = cyxla.get_include()
    assert isinstance(include, list)
    assert all(isinstance(folder, str) and Path(folder).is_absolute() for folder in include)
    assert Path(include[1], "cyxla", "_runtime.pxd").is_file()
    assert Path(include[1], "cyxla", "_pjrt.pxd").is_file()


def test_a_c_compiler_finds_the_abi_version_there() -> None:
    compiler = shutil.which("cc")
    assert compiler is not None, "a C compiler is needed to build cyxla, and to test it"
    preprocessed = subprocess.run(
        [compiler, "-E", "-P", "-I", cyxla.get_include()[0], "-"],
        input="#include <cyxla/cyxla.h>\nabi version CYXLA_ABI_VERSION",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert preprocessed.split()[-1] == str(abi.abi_version())


def test_header_and_extension_have_one_version() -> None:
    assert abi.abi_version() == _runtime.ABI_VERSION


def test_the_own_version_is_accepted() -> None:
    cyxla.check_abi(_runtime.ABI_VERSION)


@pytest.mark.parametrize("difference", [-1, 1, 10**30])
def test_another_version_is_refused(difference: int) -> None:
    own = _runtime.ABI_VERSION
    with pytest.raises(AbiError) as caught:
        cyxla.check_abi(own + difference)
    assert str(caught.value) == (
        f"the module was compiled against ABI version {own + difference} of cyxla, the installed "
        f"cyxla has {own}: rebuild the module against the installed cyxla, or install the cyxla "
        "that it was built for"
    )


@pytest.mark.parametrize("version", [None, "1", 1.0, True, b"1", np.int32(1)])
def test_invalid_versions_are_refused(version: object) -> None:
    with pytest.raises(AbiError) as caught:
        cyxla.check_abi(version)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "check_abi takes the ABI_VERSION that a module was compiled with, an int, not "
        f"{version!r} ({type(version).__name__})"
    )


def test_neither_numpy_nor_jax_nor_the_extension_nor_a_plugin_is_needed() -> None:
    printed = run_code(f"""
        import sys
        for name in ("numpy", "jax", "jaxlib", "ml_dtypes", "cyxla._runtime"):
            sys.modules[name] = None  # makes its import fail
        import cyxla
        cyxla.check_abi({_runtime.ABI_VERSION})
        try:
            cyxla.check_abi(-1)
        except ImportError as error:
            print(type(error).__name__)
        print(cyxla.get_include(), "cyxla.plugins" in sys.modules)
    """)
    assert printed == f"AbiError\n{cyxla.get_include()} False\n"


def test_a_package_without_its_headers_says_so(tmp_path: Path) -> None:
    source = Path(abi.__file__).parent
    for module in ("__init__.py", "abi.py", "errors.py"):
        (tmp_path / "cyxla").mkdir(exist_ok=True)
        shutil.copy(source / module, tmp_path / "cyxla")
    code = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import cyxla
        for call in (cyxla.get_include, lambda: cyxla.check_abi(1)):
            try:
                call()
            except cyxla.Error as error:
                print(type(error).__name__, error)
        folder = sys.path[0] + "/cyxla/include/cyxla"
        __import__("os").makedirs(folder)
        open(folder + "/cyxla.h", "w").write("int cyxla;")
        try:
            cyxla.check_abi(1)
        except cyxla.AbiError as error:
            print(error)
    """
    include = tmp_path / "cyxla" / "include"
    missing = (
        f"no cyxla/cyxla.h in {include}: install cyxla with pip; a source tree has its headers "
        "elsewhere"
    )
    unknown = "the ABI version of cyxla cannot be determined: "
    assert run_code(code).splitlines() == [
        f"Error {missing}",
        f"AbiError {unknown}{missing}",
        f"{unknown}no CYXLA_ABI_VERSION in {include / 'cyxla' / 'cyxla.h'}; reinstall cyxla",
    ]


def test_checking_is_quick() -> None:
    # The import of every module built against cyxla calls it.
    code = f"""
        import cyxla, time
        cyxla.check_abi({_runtime.ABI_VERSION})
        def seconds():
            start = time.perf_counter()
            for _ in range(1000):
                cyxla.check_abi({_runtime.ABI_VERSION})
            return time.perf_counter() - start
        print(min(seconds() for _ in range(5)))  # the machine may be busy
    """
    assert float(run_code(code)) < 0.1
