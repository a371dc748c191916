# SPDX-License-Identifier: Apache-2.0
"""The extension's use of static TLS, which the C library reserves for loaded libraries."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from child_process import run_code
from cyxla import _runtime

_PT_TLS = 7
_LIMIT_BYTES = 16
_NUM_LIBRARIES = 24

_LOAD = """
    import ctypes, numpy
    def load(most):
        for number in range(most):
            try:
                ctypes.CDLL(f"{folder}/tls-{{number}}.so")
            except OSError as error:
                assert "static TLS" in str(error), error
                return number
        return most
"""


def _tls_bytes(path: Path) -> int:
    """Return the size in memory of the thread-local segments of a 64-bit little-endian ELF file."""
    data = path.read_bytes()
    assert data[:6] == b"\x7fELF\x02\x01", path
    (start,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    headers = [struct.unpack_from("<I36xQ", data, start + i * size) for i in range(count)]
    return sum(memory for kind, memory in headers if kind == _PT_TLS)


def test_the_extension_takes_two_words_of_static_tls() -> None:
    assert 0 < _tls_bytes(Path(_runtime.__file__)) <= _LIMIT_BYTES


def test_libraries_with_static_tls_load_beside_it(tmp_path: Path) -> None:
    """Libraries with 136 bytes each, like libgomp, until the reserve is used up."""
    source = tmp_path / "tls.c"
    source.write_text(
        '__attribute__((tls_model("initial-exec"))) __thread char block[136];\n'
        "char *get(void) { return block; }\n"
    )
    for number in range(_NUM_LIBRARIES):
        output = tmp_path / f"tls-{number}.so"
        command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{output.name}", "-o", output, source]
        subprocess.run(command, check=True, timeout=60)
    load = _LOAD.format(folder=tmp_path)
    alone = int(run_code(f"{load}\n    print(load({_NUM_LIBRARIES}))"))
    assert 3 < alone < _NUM_LIBRARIES
    after = f"{load}\n    from cyxla import _runtime\n    print(load({_NUM_LIBRARIES}))"
    assert int(run_code(after)) >= alone - 1
    before = f"{load}\n    print(load({alone - 1}))\n    from cyxla import _runtime"
    assert int(run_code(before)) == alone - 1
