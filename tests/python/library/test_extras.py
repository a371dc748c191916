# SPDX-License-Identifier: Apache-2.0
"""Fortran programs, pkg-config and CMake use a library."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import cyxla

EXTRAS = ("fortran", "pkg-config", "cmake")


def model(a: Any, X: Any, x: Any) -> dict[str, Any]:  # noqa: N803
    return {"product": a @ x, "_sum": jnp.sum(X) * jnp.sin(x[0]), "phase": x[0] + 2j * X[:2]}


@pytest.fixture(scope="module")
def program() -> cyxla.Program:
    shapes = [jax.ShapeDtypeStruct(shape, "f8") for shape in ((2, 3), (3,), (3,))]
    return cyxla.lower(model, shapes, platform="cpu")


MAIN = """
program main
  use, intrinsic :: iso_c_binding
  use {module}
  implicit none
  real(c_double) :: a(3, 2), x(3), product(2), total
  complex(c_double_complex) :: phase(2)
  a = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [3, 2])
  x = [1d0, 10d0, 100d0]
  call model(a, [1d0, 2d0, 3d0], x, total, phase, product)
  print '(F0.1, 1X, F0.1)', product
  print '(F0.6)', total
  print '(F0.1, 1X, F0.1)', phase
end program
"""
PRINTED = ["321.0 654.0", "5.048826", "1.0 2.0", "1.0 4.0"]


def test_a_fortran_program(program: cyxla.Program, tmp_path: Path) -> None:
    library = cyxla.build_library(program, tmp_path / "model.a", extras=["fortran"])
    assert library.extras == (tmp_path / "model.f90",)
    # The module cannot have the subroutine's name.
    (tmp_path / "main.f90").write_text(MAIN.format(module="model_2"))
    command = ["gfortran", "-std=f2018", "-Wall", "-Wextra", "-Werror", "model.f90", "main.f90"]
    command += ["model.a", "-lm", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=100)
    printed = subprocess.check_output([tmp_path / "main"], text=True, timeout=20)
    assert printed.split("\n")[:-1] == PRINTED


def test_fortran_names_that_differ_in_case_and_optional_outputs(
    program: cyxla.Program, tmp_path: Path
) -> None:
    library = cyxla.build_library(
        {"f": program, "F": program}, tmp_path / "c_model.o", extras=["fortran"], optional=["phase"]
    )
    text = library.extras[0].read_text()
    assert "module ac_model" in text
    assert "subroutine F_2( &" in text
    assert 'bind(c, name="F")' in text
    assert "real(c_double), intent(in) :: X_2(3)" in text or "intent(in) :: x_2(3)" in text
    assert "complex(c_double_complex), intent(out), optional :: phase(2)" in text
    command = ["gfortran", "-std=f2018", "-Wall", "-Werror", "-c", str(library.extras[0])]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=100)


C_MAIN = """
#include <stdio.h>
#include "{header}"
int main(void) {{
  const double a[6] = {{1, 2, 3, 4, 5, 6}}, X[3] = {{1, 2, 3}}, x[3] = {{1, 10, 100}};
  double sum, phase[4], product[2];
  model(a, X, x, &sum, phase, product);
  printf("%.1f %.1f\\n", product[0], product[1]);
  return 0;
}}
"""


def test_pkg_config(program: cyxla.Program, tmp_path: Path) -> None:
    library = cyxla.build_library(program, tmp_path / "libmodel.a", extras=["pkg-config"])
    (tmp_path / "main.c").write_text(C_MAIN.format(header="libmodel.h"))
    query = ["pkg-config", "--cflags", "--libs", str(library.extras[0])]
    flags = subprocess.check_output(query, text=True, timeout=20).split()
    subprocess.run(["cc", "main.c", *flags, "-o", "main"], cwd=tmp_path, check=True, timeout=100)
    printed = subprocess.check_output([tmp_path / "main"], text=True, timeout=20)
    assert printed == "321.0 654.0\n"


@pytest.mark.parametrize("suffix", [".a", ".so"])
def test_cmake(program: cyxla.Program, tmp_path: Path, suffix: str) -> None:
    cyxla.build_library(program, tmp_path / f"model{suffix}", extras=["cmake"])
    (tmp_path / "main.c").write_text(C_MAIN.format(header="model.h"))
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(user LANGUAGES C)\n"
        "find_package(model REQUIRED PATHS . NO_DEFAULT_PATH)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE model::model)\n"
    )
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=tmp_path, check=True, timeout=100, capture_output=True)
    printed = subprocess.check_output([tmp_path / "build" / "main"], text=True, timeout=20)
    assert printed == "321.0 654.0\n"


@pytest.mark.parametrize(
    ("extras", "name", "message"),
    [
        (["rust"], "model.a", "'rust' is not one of fortran, pkg-config, cmake"),
        (["cmake"], "model.o", "'cmake' is for static and shared libraries, not for '.o'"),
    ],
)
def test_wrong_extras_are_refused(
    program: cyxla.Program, tmp_path: Path, extras: list[str], name: str, message: str
) -> None:
    with pytest.raises(cyxla.ArgumentError, match=message):
        cyxla.build_library(program, tmp_path / name, extras=extras)
    assert list(tmp_path.iterdir()) == []
