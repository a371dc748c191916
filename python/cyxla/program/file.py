# SPDX-License-Identifier: Apache-2.0
"""Program files, which `Program.save` writes and `Program.load` reads.

The extension module implements the format. No plugin is needed, and JAX only to write the StableHLO
for an older version than the program's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from cyxla.abi import package_version
from cyxla.dtypes import ArrayType, ElementType
from cyxla.errors import ArgumentError, UnsupportedError
from cyxla.program.signature import ProgramArray
from cyxla.program.versions import for_version, is_newer, is_version

if TYPE_CHECKING:
    from cyxla.program.program import Program

__all__ = ["load_program", "save_program", "write_atomically"]


def save_program(
    program: Program, path: str | os.PathLike[str], stablehlo_version: str | None
) -> None:
    """See `Program.save`."""
    from cyxla import _runtime

    target = _checked_path(path)
    program.check_portable()
    artifact, version = _artifact_for(program, stablehlo_version)
    try:
        content = _runtime.write_program_file(
            program.name,
            program.platform,
            artifact,
            program.text,
            [(array.name, int(array.element_type), array.shape) for array in program.inputs],
            [(array.name, int(array.element_type), array.shape) for array in program.outputs],
            program.custom_call_targets,
            program.flops,
            version,
            program.jax_version,
            package_version(),
        )
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"program {program.name!r} cannot be saved: a name in it is not Unicode text ({error})"
        ) from error
    replaced = _replaceable(target, f"program {program.name!r} cannot be saved as {target}")
    try:  # follows a symbolic link and replaces its target
        write_atomically(Path(os.path.realpath(target)), content, 0o666, replaced=replaced)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error


def load_program(program_class: type[Program], path: str | os.PathLike[str]) -> Program:
    """See `Program.load`."""
    from cyxla import _runtime

    content = _read_regular(_checked_path(path))
    try:
        fields = _runtime.read_program_file(content)
        inputs = tuple(_array(*array) for array in fields["inputs"])
        outputs = tuple(_array(*array) for array in fields["outputs"])
    except ArgumentError as error:
        raise ArgumentError(f"cannot load a program from {path}: {error}") from None
    return program_class(
        name=fields["name"],
        platform=fields["platform"],
        inputs=inputs,
        outputs=outputs,
        stablehlo=fields["artifact"],
        stablehlo_version=fields["stablehlo_version"],
        text=fields["text"],
        custom_call_targets=fields["custom_call_targets"],
        needs_python=False,
        jax_version=fields["jax_version"],
        flops=fields["flops"],
    )


def write_atomically(
    path: Path,
    content: bytes,
    mode: int,
    *,
    is_durable: bool = True,
    replaced: os.stat_result | None = None,
) -> None:
    """Write a file atomically: readers see the old file or the new one.

    With `is_durable` this holds after a power failure too. The new file gets the permissions and,
    if possible, the owner of the `replaced` one.

    Raises:
        OSError: the file cannot be written; the old one is unchanged.
    """
    start = os.fsencode(path.name)[:100].decode(errors="ignore")  # file systems limit the bytes
    temporary = path.with_name(f".{start}.{os.getpid()}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "wb") as file:
            if replaced is not None:
                with contextlib.suppress(OSError):
                    os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
                os.fchmod(descriptor, replaced.st_mode & 0o777)
            file.write(content)
            if is_durable:
                file.flush()
                os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _checked_path(path: object) -> str:
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    try:
        is_path = isinstance(text, str) and bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        raise ArgumentError(
            f"path must be the path of a program file, a str or a PathLike of one, got {path!r}"
        )
    return str(text)


def _replaceable(path: str, failure: str) -> os.stat_result | None:
    """Return the status of the file that a new one replaces, None if there is none."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"{failure}: the folder {folder} does not exist; make it first")
    try:
        status = os.stat(path)
    except FileNotFoundError:
        status = None
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"{failure}: that is a folder; add the name of a file in it")
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise FileExistsError(
            f"{failure}: it is a device, pipe or socket, and only regular files are replaced; give"
            " another name"
        )
    return status


def _read_regular(path: str) -> bytes:
    """Return a regular file's content; reading a device or pipe could block or never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise ArgumentError(
                f"cannot load a program from {path}: it is a device or pipe; copy its data to a"
                " file first"
            )
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _artifact_for(program: Program, asked: str | None) -> tuple[bytes, str]:
    """Return the program's artifact for readers of a StableHLO version, and its own version."""
    wanted = asked
    if asked is None:
        from cyxla import runtime

        wanted = runtime.runtime_info().stablehlo_version if runtime.is_initialized() else None
    elif not is_version(asked):
        raise ArgumentError(
            f"stablehlo_version must be a version such as '1.13.3', got {asked!r}; a plugin's is in"
            " cyxla.runtime_info().stablehlo_version"
        )
    if wanted is None or not is_newer(program.stablehlo_version, wanted):
        return program.stablehlo, program.stablehlo_version  # readers accept older artifacts
    try:
        return for_version(program, wanted), wanted
    except (ImportError, UnsupportedError) as error:
        if asked is None:  # such a reader can still use the text, which has no version
            return program.stablehlo, program.stablehlo_version
        if isinstance(error, UnsupportedError):
            raise
        raise UnsupportedError(
            f"program {program.name!r} is StableHLO {program.stablehlo_version}; writing it as"
            f" {asked} needs jax: pip install 'jax>=0.10.2' ({error})"
        ) from error


def _array(name: str, element_type: int, shape: tuple[int, ...]) -> ProgramArray:
    return ProgramArray.of(name, ArrayType(ElementType(element_type), shape))
