# SPDX-License-Identifier: Apache-2.0
"""Saving programs and loading them, without jax where that is possible."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from child_process import run_code
from cpu_plugins import CPU_LIBRARIES, run_with_plugin

# Makes the import of jax fail.
_NO_JAX = """
import sys
for name in ("jax", "jaxlib", "jax.extend", "scipy"):
    sys.modules[name] = None
"""


def tree(arguments: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
    return {"é": jnp.sin(arguments["a"]) * 2 + x, "count": jnp.int32(3) + arguments["n"]}


def example() -> cyxla.Program:
    shapes = {"a": jax.ShapeDtypeStruct((3, 2), "float32"), "n": jax.ShapeDtypeStruct((), "int32")}
    return cyxla.lower(tree, [shapes, jax.ShapeDtypeStruct((2,), "bfloat16")], platform="cpu")


def cholesky() -> cyxla.Program:
    return cyxla.lower(
        jnp.linalg.cholesky, [jax.ShapeDtypeStruct((2, 2), "float32")], platform="cpu"
    )


def test_a_saved_program_is_loaded(tmp_path: Path) -> None:
    program = example()
    assert program.flops is not None
    path = tmp_path / "tree.cyxla"
    program.save(path, stablehlo_version=program.stablehlo_version)
    assert cyxla.Program.load(path) == program
    assert cyxla.Program.load(str(path)).describe() == program.describe()
    for changed in (
        dataclasses.replace(program, flops=None),
        dataclasses.replace(program, inputs=(), outputs=()),
        dataclasses.replace(program, custom_call_targets=("a", "b")),
        dataclasses.replace(program, name="ü", text=""),
    ):
        changed.save(path, stablehlo_version=program.stablehlo_version)
        assert cyxla.Program.load(path) == changed


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"something else")
    os.symlink(path, tmp_path / "link")
    program = cholesky()
    program.save(tmp_path / "link")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "program"]
    assert cyxla.Program.load(path).custom_call_targets == program.custom_call_targets
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_save_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"kept")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        example().save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["program"]
    assert path.read_bytes() == b"kept"


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"the folder .*/missing does not exist; make it first"
    ):
        example().save(tmp_path / "missing" / "program")
    with pytest.raises(FileNotFoundError):
        cyxla.Program.load(tmp_path / "missing")


def test_the_permissions_of_a_file_that_is_replaced_stay(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"")
    path.chmod(0o640)
    example().save(path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert cyxla.Program.load(path).name == "tree"


def test_special_files_are_neither_replaced_nor_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    os.symlink(pipe, tmp_path / "link")
    for path in (pipe, tmp_path / "link"):
        with pytest.raises(
            FileExistsError, match=f"saved as {path}: it is a device, pipe or socket"
        ):
            example().save(path)
        with pytest.raises(cyxla.ArgumentError, match=f"from {path}: it is a device or pipe"):
            cyxla.Program.load(path)
    assert pipe.is_fifo()
    with pytest.raises(cyxla.ArgumentError, match="from /dev/zero: it is a device or pipe"):
        cyxla.Program.load("/dev/zero")
    with pytest.raises(IsADirectoryError, match=f"saved as {tmp_path}: that is a folder"):
        example().save(tmp_path)
    with pytest.raises(IsADirectoryError, match=f"directory: '{tmp_path}'"):
        cyxla.Program.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"the folder {tmp_path}/new does not exist"):
        example().save(f"{tmp_path}/new/")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "pipe"]


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("\N{GRINNING FACE}" * 60)
    example().save(path)
    assert list(tmp_path.iterdir()) == [path]
    too_long = tmp_path / ("a" * 300)
    with pytest.raises(OSError, match="name too long") as caught:
        example().save(too_long)
    assert caught.value.filename == str(too_long)


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"program"


@pytest.mark.parametrize("path", ["", b"program", BytesPath(), None, 3, "a\0b", "\ud800"])
def test_paths_that_are_none(path: Any) -> None:
    for action in (example().save, cyxla.Program.load):
        with pytest.raises(cyxla.ArgumentError, match="path must be the path of a program file"):
            action(path)


def test_files_that_are_not_programs(tmp_path: Path) -> None:
    path = tmp_path / "program"

    def message(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(cyxla.ArgumentError) as caught:
            cyxla.Program.load(path)
        assert str(caught.value).startswith(f"cannot load a program from {path}: ")
        return str(caught.value)

    example().save(path)
    content = path.read_bytes()
    assert "it is empty" in message(b"")
    foreign = message(b"\x80\x04pickle")
    assert "it is not a cyxla program file; write one with Program.save" in foreign
    assert "it is cut off" in message(content[:-1])
    assert "its checksum does not match" in message(content[:-9] + b"?" + content[-8:])
    newer = content[:8] + b"\x02" + content[9:]
    assert "its format is version 2, but this cyxla reads version 1; upgrade" in message(newer)


def test_texts_that_are_not_unicode(tmp_path: Path) -> None:
    path = tmp_path / "program"
    with pytest.raises(cyxla.ArgumentError, match="a name in it is not Unicode text"):
        dataclasses.replace(example(), name="\udc80").save(path)
    assert not path.exists()


def test_programs_that_need_python_cannot_be_saved(tmp_path: Path) -> None:
    def printing(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x)
        return x

    program = cyxla.lower(printing, [np.zeros(2, "f4")], platform="cpu")
    with pytest.raises(cyxla.UnsupportedError, match="'printing' calls Python functions"):
        program.save(tmp_path / "program")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", ["1.13", "newest", "1.13.3 ", 1, "9" * 5000 + ".0.1"])
def test_versions_that_are_none(tmp_path: Path, version: str) -> None:
    with pytest.raises(cyxla.ArgumentError, match=r"stablehlo_version must be .* such as '1.13.3'"):
        example().save(tmp_path / "program", stablehlo_version=version)


def test_the_version_that_was_asked_for(tmp_path: Path) -> None:
    program = example()
    program.save(tmp_path / "older", stablehlo_version="1.8.0")
    older = cyxla.Program.load(tmp_path / "older")
    assert older.stablehlo_version == "1.8.0"
    assert b"StableHLO_v1.8.0" in older.stablehlo
    executable, _ = cyxla.compile_program(older)
    arrays = [np.ones((3, 2)), 4, np.array([1, 2])]
    expected = cyxla.compile_program(program)[0].run(arrays)
    for result, wanted in zip(executable.run(arrays), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)
    # A newer reader accepts it unchanged.
    program.save(tmp_path / "newer", stablehlo_version="99.0.0")
    assert cyxla.Program.load(tmp_path / "newer") == program


def test_a_version_that_lacks_an_operation(tmp_path: Path) -> None:
    program = cyxla.lower(
        lambda x: jax.lax.reduce_precision(x, 5, 10).astype("float8_e8m0fnu"),
        [jax.ShapeDtypeStruct((3,), "float32")],
        platform="cpu",
    )
    with pytest.raises(cyxla.UnsupportedError, match=r"cannot be written as StableHLO 1\.0\.0"):
        program.save(tmp_path / "program", stablehlo_version="1.0.0")


def test_without_jax_no_older_version_can_be_written(tmp_path: Path) -> None:
    example().save(tmp_path / "program", stablehlo_version="99.0.0")
    printed = run_code(
        f"""{_NO_JAX}
import cyxla
program = cyxla.Program.load({str(tmp_path / "program")!r})
program.save({str(tmp_path / "copy")!r})
print(cyxla.Program.load({str(tmp_path / "copy")!r}) == program, cyxla.is_initialized())
try:
    program.save({str(tmp_path / "older")!r}, stablehlo_version="1.8.0")
except cyxla.UnsupportedError as error:
    print(error)
"""
    )
    first, second = printed.splitlines()
    assert first == "True False"
    assert "writing it as 1.8.0 needs jax: pip install 'jax>=0.10.2'" in second


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_a_program_runs_without_jax(library: str, tmp_path: Path) -> None:
    """The artifact is too new for the two older plugins, so the text is compiled."""
    example().save(tmp_path / "program", stablehlo_version="99.0.0")
    printed = run_with_plugin(
        library,
        f"""{_NO_JAX}
import cyxla, numpy as np
program = cyxla.Program.load({str(tmp_path / "program")!r})
executable, statistics = cyxla.compile_program(program)
count, result = executable.run([np.zeros((3, 2)), 4, np.array([1, 2])])
print(count, result.tolist(), executable.route)
print("jax" in sys.modules and sys.modules["jax"] is not None)
""",
    )
    assert printed.splitlines() == ["7 [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]] direct", "False"]


def test_saved_for_the_plugin_that_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "program"
    code = f"""
    import jax, cyxla
    program = cyxla.lower(lambda x: x * 2, [jax.ShapeDtypeStruct((3,), "f4")], platform="cpu")
    program.save({str(path)!r})
    print(cyxla.Program.load({str(path)!r}).stablehlo_version == program.stablehlo_version)
    version = cyxla.runtime_info().stablehlo_version
    program.save({str(path)!r})
    print(cyxla.Program.load({str(path)!r}).stablehlo_version, version)
    """
    first, second = run_with_plugin("xla_cpu_pjrt.so", code).splitlines()
    assert first == "True"
    assert second == "1.13.3 1.13.3"


@pytest.mark.parametrize("library", CPU_LIBRARIES[:1])
def test_linear_algebra_in_a_fresh_process(library: str, tmp_path: Path) -> None:
    cholesky().save(tmp_path / "program")
    printed = run_with_plugin(
        library,
        f"""
        import sys, cyxla, numpy as np
        program = cyxla.Program.load({str(tmp_path / "program")!r})
        executable, _ = cyxla.compile_program(program)
        (factor,) = executable.run([np.array([[4.0, 1.0], [1.0, 1.25]])])
        print(factor.tolist())
        """,
    )
    assert printed.splitlines() == ["[[2.0, 0.0], [0.5, 1.0]]"]


def test_linear_algebra_without_jaxlib_says_what_is_missing(tmp_path: Path) -> None:
    cholesky().save(tmp_path / "program")
    printed = run_code(
        f"""{_NO_JAX}
import cyxla
program = cyxla.Program.load({str(tmp_path / "program")!r})
try:
    cyxla.compile_program(program)
except cyxla.CompileError as error:
    print(error)
"""
    )
    assert "lapack_spotrf_ffi (jnp.linalg.cholesky)" in printed
    assert "0 of jaxlib's handlers are registered with the plugin: ModuleNotFoundError" in printed
    assert "pip install 'jax>=0.10.2'" in printed
