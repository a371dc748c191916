# SPDX-License-Identifier: Apache-2.0
"""A cache folder for compiled programs.

An entry holds the executable as the plugin serialized it: machine code for this plugin and this
CPU model. Its file name is a hash of everything that the code depends on. An entry that is
truncated, altered or writable by another user counts as missing, and the program is compiled.
Entries and the folder can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import stat
import struct
import warnings
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cyxla.abi import package_version
from cyxla.compilation.settings import CompileRequest
from cyxla.ffi.targets import jaxlib_registered
from cyxla.plugins.client import variables_at_load, variables_now
from cyxla.plugins.xla_flags import VARIABLE, names_a_file
from cyxla.program.file import write_atomically
from cyxla.program.program import Program

if TYPE_CHECKING:
    from cyxla._runtime import Compiled

__all__ = [
    "Entry",
    "Location",
    "entry_of",
    "location_of",
    "refusal",
    "size_of",
    "usable_folder",
    "warn_of_failures",
]

_MAGIC: Final = b"\x89CYXLAE\n"
_FORMAT_VERSION: Final = 1
_SUFFIX: Final = ".executable"
_HEADER: Final = struct.Struct("<8sI32s32s")  # magic, version, key, SHA-256 of the key and the rest
_FIRST: Final = struct.Struct("<?dqI")  # marks_donation, seconds, program_bytes, destinations
_OPTIONAL: Final = {
    "code_bytes": struct.Struct("<?q"),
    "argument_bytes": struct.Struct("<?q"),
    "output_bytes": struct.Struct("<?q"),
    "temporary_bytes": struct.Struct("<?q"),
    "flops": struct.Struct("<?d"),
    "instructions": struct.Struct("<?q"),
}
_MAX_BYTES: Final = 1 << 30  # of an entry; a damaged file may state more than fits in memory
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

_warned_of: set[Path] = set()
_failures: dict[Path, str] = {}


class Entry(NamedTuple):
    """A compiled program in the cache.

    Attributes:
        serialized: the executable as the plugin serialized it.
        marks_donation: whether its code allows an input to be donated.
        destinations: outputs for which it takes a donated destination.
        measured: statistics of the compilation, None for those that the plugin did not report.
    """

    serialized: bytes
    marks_donation: bool
    destinations: tuple[int, ...]
    measured: Mapping[str, Any]


def entry_of(compiled: Compiled, destinations: tuple[int, ...]) -> Entry:
    """Return the cache entry for a compiled program."""
    measured = compiled.measured._asdict()
    return Entry(compiled.serialized, compiled.marks_donation, destinations, measured)


class Location(NamedTuple):
    """The position of one entry in the cache: its folder and key."""

    folder: Path
    key: bytes

    @property
    def path(self) -> Path:
        """The entry's file."""
        return self.folder / f"{self.key.hex()}{_SUFFIX}"

    def read(self) -> Entry | None:
        """Return the entry, None if it is missing or damaged."""
        try:
            content = _read_own(self.path)
            return None if content is None else _decoded(content, self.key)
        except (ValueError, struct.error, MemoryError):
            return None

    def write(self, entry: Entry) -> None:
        """Write an entry or replace it; `warn_of_failures` reports a failure."""
        content = _encoded(entry, self.key)
        if len(content) > _MAX_BYTES:
            return
        try:
            write_atomically(self.path, content, 0o600, is_durable=False)
        except OSError as error:
            _failures[self.folder] = f"an entry cannot be written: {error.strerror or error}"


def usable_folder(folder: Path, *, stacklevel: int) -> Path | None:
    """Return the folder, made if missing; None, with one RuntimeWarning, if it cannot be used."""
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(0o700, exist_ok=True)
        reason = refusal(folder)
    except (OSError, ValueError) as error:
        reason = str(error)
    if not reason:
        return folder
    _warn(folder, reason, stacklevel=stacklevel + 1)
    return None


def refusal(folder: Path) -> str:
    """Return why a folder cannot be used; empty if it can, or does not exist yet."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return str(error)
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if status.st_uid != os.geteuid():
        return f"it belongs to the user {status.st_uid}, and cyxla runs the code in it"
    if status.st_mode & _OTHERS_MAY_WRITE:
        return f"other users can write to it, and cyxla runs the code in it: chmod go-w {folder}"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return "it cannot be written to"
    return ""


def warn_of_failures(folder: Path | None, *, stacklevel: int) -> None:
    """Issue one RuntimeWarning if an entry could not be written, perhaps on a worker thread."""
    reason = None if folder is None else _failures.pop(folder, None)
    if folder is not None and reason is not None:
        _warn(folder, reason, stacklevel=stacklevel + 1)


def location_of(request: CompileRequest) -> Location | None:
    """Return the cache location for a compiled program, None if it is not cached."""
    program, settings = request.program, request.settings
    if settings.cache_folder is None or program.needs_python:
        return None
    if any(names_a_file(dict(read)[VARIABLE] or "") for read in variables_at_load()):
        return None  # the flags that the plugin read from the file are unknown
    plugin_hash = _plugin_hash(request.info.plugin.path, settings.cache_folder)
    if plugin_hash is None:
        return None
    key = hashlib.sha256()
    for part in _parts(request, plugin_hash):
        key.update(len(part).to_bytes(8, "little") + part)
    return Location(settings.cache_folder, key.digest())


def size_of(folder: Path) -> tuple[int, int]:
    """Return the number of entries in the folder and their total size in bytes."""
    sizes = []
    with contextlib.suppress(OSError):
        for path in folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                sizes.append(path.stat().st_size)
    return len(sizes), sum(sizes)


def _parts(request: CompileRequest, plugin_hash: str) -> Iterator[bytes]:
    """Yield everything that the compiled program depends on."""
    program, settings, info = request.program, request.settings, request.info
    from cyxla import _runtime

    loaded = _runtime.loaded_runtime()
    kind, debug_string, device_attributes, num_devices = _runtime.device_description()
    arrays = (*program.inputs, *program.outputs)
    described: dict[str, object] = {
        "cyxla": (package_version(), _runtime.ABI_VERSION, _FORMAT_VERSION),
        "plugin": (plugin_hash, info.api_version, info.platform),
        "attributes": loaded and (loaded.platform_version, sorted(loaded.attributes.items())),
        "client": (sorted(info.plugin.create_options.items()), info.threads),
        "machine": (_cpu(), _num_cpus()),
        "device": (kind, debug_string, sorted(device_attributes.items()), num_devices),
        "variables": [*variables_at_load(), variables_now()],
        "options": (
            sorted(settings.overrides.items()),
            sorted(settings.optional),
            settings.base_options,
        ),
        "in place": settings.outputs_in_place,
        "signature": (len(program.inputs), [array.array_type for array in arrays]),
        "program": (program.platform, program.stablehlo_version),
        "custom calls": _handlers(program),
    }
    yield repr(described).encode("utf-8", "backslashreplace")
    yield program.stablehlo
    yield program.text.encode("utf-8", "backslashreplace")


def _handlers(program: Program) -> tuple[object, ...]:
    if not program.custom_call_targets:
        return ()
    try:
        version = metadata.version("jaxlib")
    except metadata.PackageNotFoundError:
        version = "none"
    return (program.custom_call_targets, version, jaxlib_registered())


def _num_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _cpu() -> tuple[str, ...]:
    """Return the CPU's model and features, which affect the generated code."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return (platform.machine(), platform.processor(), platform.platform())
    telling = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")
    return (platform.machine(), *sorted({line for line in lines if line.startswith(telling)}))


@functools.cache
def _plugin_hash(path: Path, folder: Path) -> str | None:
    """Return the SHA-256 of the plugin's file, None if the file was replaced after loading.

    Hashing tens of megabytes takes longer than many compilations, so the folder caches the hash.
    """
    try:
        status = path.stat()
        if not _is_mapped(path):
            return None
        identity = repr(
            (
                str(path),
                status.st_dev,
                status.st_ino,
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
            )
        ).encode("utf-8", "surrogateescape")
        kept = folder / f"plugin-{hashlib.sha256(identity).hexdigest()[:32]}"
        content = (_read_own(kept) or b"").decode("ascii", "replace")
        if content[64:] == hashlib.sha256(identity + content[:64].encode()).hexdigest():
            return content[:64]
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
    seal = hashlib.sha256(identity + found.encode()).hexdigest()
    with contextlib.suppress(OSError):
        write_atomically(kept, (found + seal).encode(), 0o600, is_durable=False)
    return found


def _is_mapped(path: Path) -> bool:
    """Return whether this process has mapped the file at this path; it may have been replaced."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return True
    real = os.path.realpath(path)  # the line of a replaced file ends in " (deleted)"
    return any(line.split(maxsplit=5)[5:] == [real] for line in lines)


def _read_own(path: Path) -> bytes | None:
    """Return a file's content, None if another user could have written it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            if not is_own or status.st_mode & _OTHERS_MAY_WRITE or status.st_size > _MAX_BYTES:
                return None
            return file.read(status.st_size)
    except OSError:
        return None


def _encoded(entry: Entry, key: bytes) -> bytes:
    measured = entry.measured
    rest = [
        _FIRST.pack(
            entry.marks_donation,
            measured["seconds"],
            measured["program_bytes"],
            len(entry.destinations),
        )
    ]
    for name, layout in _OPTIONAL.items():
        value = measured[name]
        rest.append(layout.pack(value is not None, 0 if value is None else value))
    rest.append(struct.pack(f"<{len(entry.destinations)}I", *entry.destinations))
    rest.append(entry.serialized)
    content = b"".join(rest)
    digest = hashlib.sha256(key + content).digest()
    return _HEADER.pack(_MAGIC, _FORMAT_VERSION, key, digest) + content


def _decoded(content: bytes, key: bytes) -> Entry:
    magic, version, own_key, digest = _HEADER.unpack_from(content)
    rest = memoryview(content)[_HEADER.size :]
    if (magic, version, own_key) != (_MAGIC, _FORMAT_VERSION, key):
        raise ValueError("the entry belongs to another program")
    if hashlib.sha256(key + rest).digest() != digest:
        raise ValueError("the entry is damaged")
    marks_donation, seconds, program_bytes, num_destinations = _FIRST.unpack_from(rest)
    at = _FIRST.size
    measured: dict[str, Any] = {"seconds": seconds, "program_bytes": program_bytes}
    for name, layout in _OPTIONAL.items():
        is_known, value = layout.unpack_from(rest, at)
        measured[name] = value if is_known else None
        at += layout.size
    destinations = struct.unpack_from(f"<{num_destinations}I", rest, at)
    serialized = bytes(rest[at + 4 * num_destinations :])
    return Entry(serialized, marks_donation, destinations, measured)


def _warn(folder: Path, reason: str, *, stacklevel: int) -> None:
    if folder in _warned_of:
        return
    _warned_of.add(folder)
    warnings.warn(
        f"compiled programs are not kept in the cache folder {folder}: {reason}",
        RuntimeWarning,
        stacklevel=stacklevel + 1,
    )
