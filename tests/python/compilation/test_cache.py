# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled programs: hits, misses and damaged entries."""

from __future__ import annotations

import dataclasses
import os
import textwrap
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cyxla
from child_process import run_process
from cpu_plugins import CPU_LIBRARIES, variables
from cyxla import _runtime
from cyxla.compilation import cache as executable_cache, settings as compile_settings
from cyxla.compilation.settings import CompileRequest

_PROGRAMS = """
import jax, jax.numpy as jnp, numpy as np, cyxla
def lower(function, *shape):
    return cyxla.lower(function, [jax.ShapeDtypeStruct(shape, "f8")], platform="cpu")
def loss(weights):
    return jnp.sum(jnp.tanh(weights @ weights.T) ** 2)
programs = {
    "sine": lower(lambda x: jnp.sin(x) * 2, 3),
    "loop": lower(lambda x: jax.lax.fori_loop(0, 9, lambda i, s: jnp.cos(s) + i, x), 4),
    "gradient": lower(jax.grad(loss), 8, 8),
    "top": lower(lambda x: jax.lax.top_k(x, 2), 5),
}
for name, program in programs.items():
    executable, statistics = cyxla.compile_program(program)
    (array,) = program.inputs
    count = int(np.prod(array.shape))
    results = executable.run([np.linspace(0.5, 2.5, count, dtype=array.dtype).reshape(array.shape)])
    bits = "".join(result.tobytes().hex() for result in results)
    told = statistics._replace(seconds=0, from_cache=False, second_form_seconds=None)
    print(name, statistics.from_cache, executable.route, "|", executable.route_reason, bits, told)
"""


def _lines(folder: Path, library: str, code: str = _PROGRAMS, **env: str) -> list[str]:
    env = {**variables(library), "CYXLA_CACHE_DIR": str(folder), **env}
    ended = run_process("-c", textwrap.dedent(code), env=env)
    assert ended.returncode == 0, ended.stderr
    assert "Warning" not in ended.stderr, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize("library", CPU_LIBRARIES)
def test_a_hit_gives_the_same_bits_route_and_statistics(library: str, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    first = _lines(folder, library)
    second = _lines(folder, library)
    assert [line.split()[:2] for line in first] == [
        [name, "False"] for name in ("sine", "loop", "gradient", "top")
    ]
    assert second == [line.replace(" False", " True", 1) for line in first]
    assert [line.split()[2] for line in second[:2]] == ["direct", "direct"]
    assert folder.stat().st_mode & 0o777 == 0o700
    entries = list(folder.iterdir())
    assert {entry.stat().st_mode & 0o777 for entry in entries} == {0o600}
    assert {entry.name.partition("-")[0] for entry in entries if not entry.suffix} == {"plugin"}


def double(x: jax.Array) -> jax.Array:
    return jnp.exp(x) * 2


def example(shape: tuple[int, ...] = (3,)) -> cyxla.Program:
    return cyxla.lower(double, [jax.ShapeDtypeStruct(shape, "float32")], platform="cpu")


def is_hit(program: cyxla.Program, folder: Path, **arguments: object) -> bool:
    executable, statistics = cyxla.compile_program(program, cache=folder, **arguments)  # type: ignore[arg-type]
    (result,) = executable.run([np.zeros(program.inputs[0].shape, "f4")])
    assert (result == 2).all()
    return statistics.from_cache


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.executable"))


def test_inputs_of_the_key(tmp_path: Path) -> None:
    program = example()
    variants: dict[str, tuple[cyxla.Program, dict[str, object]]] = {
        "plain": (program, {}),
        "options": (program, {"options": {"xla_llvm_disable_expensive_passes": True}}),
        "another value": (program, {"options": {"xla_llvm_disable_expensive_passes": False}}),
        "a value of another type": (program, {"options": {"xla_backend_optimization_level": 1}}),
        "one thread": (program, {"intra_op_threads": 1}),
        "in place": (program, {"outputs_in_place": True}),
        "shape": (example((4,)), {}),
        "text": (dataclasses.replace(program, text=program.text + "\n"), {}),
    }
    for given, arguments in variants.values():
        assert not is_hit(given, tmp_path, **arguments)
    assert len(entries(tmp_path)) == len(variants)
    for given, arguments in variants.values():
        assert is_hit(given, tmp_path, **arguments)
    # The route is chosen again; the code is the same.
    for route in ("pjrt", "direct"):
        assert is_hit(program, tmp_path, route=route)
        assert cyxla.compile_program(program, cache=tmp_path, route=route)[0].route == route
    assert len(entries(tmp_path)) == len(variants)


def test_the_key_depends_on_plugin_machine_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, info = example(), cyxla.runtime_info()
    settings = compile_settings.check_settings(
        [program], None, None, False, "auto", False, tmp_path
    )

    def key(program: cyxla.Program = program, info: cyxla.RuntimeInfo = info) -> bytes:
        location = executable_cache.location_of(CompileRequest(program, settings, info))
        assert location is not None
        return location.key

    keys = {key()}
    keys.add(key(info=info._replace(api_version=(0, 1))))
    keys.add(key(info=info._replace(threads=7)))
    keys.add(key(info=info._replace(plugin=info.plugin._replace(create_options={"other": 1}))))
    told = ("NVIDIA H100", "CudaDevice(id=0)", {"compute_capability": "9.0"}, 1)
    for device in (
        told,
        ("NVIDIA H200", *told[1:]),
        (told[0], "CudaDevice(id=1)", *told[2:]),
        (*told[:2], {"compute_capability": "9.1"}, told[3]),
        (*told[:3], 2),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(_runtime, "device_description", lambda device=device: device)
            keys.add(key())
    with monkeypatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
        keys.add(key())
    for name, value in (
        ("_cpu", ("another",)),
        ("_num_cpus", 99),
        ("_plugin_hash", "another"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(executable_cache, name, lambda *_, value=value: value)
            keys.add(key())
    calls = dataclasses.replace(program, custom_call_targets=("lapack",))
    keys.add(key(calls))
    with monkeypatch.context() as patch:
        patch.setattr(executable_cache.metadata, "version", lambda _: "99")
        keys.add(key(calls))
    assert len(keys) == 15
    assert key() in keys


def damage_end(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def damage_statistics(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[80] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def of_another_version(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8] += 1
    path.write_bytes(content)


def writable_by_others(path: Path) -> None:
    path.chmod(0o622)


def a_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def of_terabytes(path: Path) -> None:
    os.truncate(path, 1 << 42)


@pytest.mark.parametrize(
    "change",
    [
        damage_end,
        damage_statistics,
        cut,
        empty,
        of_another_version,
        writable_by_others,
        a_link,
        a_pipe,
        of_terabytes,
    ],
)
def test_a_doubtful_entry_is_compiled_again_and_rewritten(change: object, tmp_path: Path) -> None:
    assert not is_hit(example(), tmp_path)
    (path,) = entries(tmp_path)
    assert callable(change)
    change(path)
    assert not is_hit(example(), tmp_path)
    assert is_hit(example(), tmp_path)
    assert path.is_file()
    assert not path.is_symlink()


def test_an_entry_of_another_program_is_a_miss(tmp_path: Path) -> None:
    assert not is_hit(example(), tmp_path)
    (first,) = entries(tmp_path)
    assert not is_hit(example((4,)), tmp_path)
    (second,) = (path for path in entries(tmp_path) if path != first)
    second.write_bytes(first.read_bytes())
    assert not is_hit(example((4,)), tmp_path)


def test_bytes_that_the_plugin_refuses_are_compiled_again(tmp_path: Path) -> None:
    assert not is_hit(example(), tmp_path)
    (path,) = entries(tmp_path)
    location = executable_cache.Location(tmp_path, bytes.fromhex(path.stem))
    entry = location.read()
    assert entry is not None
    location.write(entry._replace(serialized=b"no executable"))
    assert not is_hit(example(), tmp_path)
    assert is_hit(example(), tmp_path)


def test_programs_that_need_python_are_not_kept(tmp_path: Path) -> None:
    program = dataclasses.replace(example(), needs_python=True)
    assert not is_hit(program, tmp_path)
    assert not is_hit(program, tmp_path)
    assert entries(tmp_path) == []


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"folder"


def test_the_argument_and_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = compile_settings.requested_folder
    monkeypatch.delenv("CYXLA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert chosen(None) is None
    assert chosen(True) == tmp_path / "cyxla"
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path / "folder"))
    assert chosen(None) == chosen(True) == tmp_path / "folder"
    assert chosen(False) is None
    assert chosen(str(tmp_path)) == chosen(tmp_path) == tmp_path
    monkeypatch.setenv("CYXLA_CACHE_DIR", "")
    assert chosen(None) is None
    assert chosen("~/x") == Path.home() / "x"
    for wrong in (3, "", b"x", BytesPath()):
        with pytest.raises(cyxla.ArgumentError, match="cache must be a folder, a bool or None"):
            cyxla.compile_program(example(), cache=wrong)  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_used_is_one_warning(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    for folder, reason in ((file / "folder", "File exists"), (open_to_all, "chmod go-w")):
        with pytest.warns(RuntimeWarning, match=reason) as caught:
            assert not is_hit(example(), folder)
        assert [warning.filename for warning in caught] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not is_hit(example(), folder)
    assert list(open_to_all.iterdir()) == []
    assert executable_cache.refusal(file) == "it is not a folder"


def test_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    assert not is_hit(example(), tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    (path,) = entries(tmp_path)
    assert executable_cache.Location(tmp_path, bytes.fromhex(path.stem)).read() is None
    with pytest.warns(RuntimeWarning, match=f"it belongs to the user {own}"):
        assert not is_hit(example(), tmp_path)


def test_a_full_disk_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="an entry cannot be written: No space left") as caught:
        cyxla.compile_program(example(), cache=tmp_path)
    many = tmp_path / "many"  # compiled on threads, which do not know the caller's line
    with pytest.warns(RuntimeWarning, match="an entry cannot be written: No space left") as more:
        cyxla.compile_programs([example(), example((4,))], cache=many)
    assert [warning.filename for warning in (*caught, *more)] == [__file__] * 2
    assert [path.name for path in tmp_path.rglob("*")] == ["many"]


def test_another_plugin_file_than_the_loaded_one_gives_no_cache(tmp_path: Path) -> None:
    other = tmp_path / "plugin.so"
    other.write_bytes(b"another file")
    info = cyxla.runtime_info()
    settings = compile_settings.check_settings(
        [example()], None, None, False, "auto", False, tmp_path
    )
    replaced = info._replace(plugin=info.plugin._replace(path=other))
    assert executable_cache.location_of(CompileRequest(example(), settings, replaced)) is None


def test_many_programs_at_once_and_many_processes(tmp_path: Path) -> None:
    programs = [example((size,)) for size in (1, 2, 3, 1, 2, 3)]
    first = cyxla.compile_programs(programs, cache=tmp_path, max_workers=2)
    # Of two equal programs the one that is compiled first is kept.
    assert sum(not statistics.from_cache for _, statistics in first) >= 3
    second = cyxla.compile_programs(programs, cache=tmp_path)
    assert all(statistics.from_cache for _, statistics in second)
    assert len(entries(tmp_path)) == 3


def test_linear_algebra_from_the_cache_without_its_handlers(tmp_path: Path) -> None:
    """Code that calls handlers must not be loaded when they are missing."""
    code = """
    import jax, jax.numpy as jnp, cyxla, numpy as np
    spec = jax.ShapeDtypeStruct((2, 2), "f4")
    program = cyxla.lower(jnp.linalg.cholesky, [spec], platform="cpu")
    cyxla.initialize(jax_targets={targets})
    try:
        executable, statistics = cyxla.compile_program(program)
        print(statistics.from_cache, executable.run([np.eye(2, dtype="f4") * 4])[0].tolist())
    except cyxla.CompileError as error:
        print("CompileError", "lapack_spotrf_ffi" in str(error))
    """
    library = CPU_LIBRARIES[0]
    with_handlers, without = (code.format(targets=targets) for targets in (True, False))
    assert _lines(tmp_path, library, with_handlers) == ["False [[2.0, 0.0], [0.0, 2.0]]"]
    assert _lines(tmp_path, library, without) == ["CompileError True"]
    assert _lines(tmp_path, library, with_handlers) == ["True [[2.0, 0.0], [0.0, 2.0]]"]


def test_the_report_shows_the_folder_and_its_size(tmp_path: Path) -> None:
    assert not is_hit(example(), tmp_path)
    size = entries(tmp_path)[0].stat().st_size / 1e6
    ended = run_process("-m", "cyxla", env={"CYXLA_CACHE_DIR": str(tmp_path)})
    assert f"Cache of compiled programs:\n  {tmp_path}: 1 program, {size:.1f} MB\n" in ended.stdout
    assert "not used" not in ended.stdout
    tmp_path.chmod(0o777)
    variables = {"CYXLA_CACHE_DIR": str(tmp_path), "CYXLA_PERF_MAP": "maybe"}
    ended = run_process("-m", "cyxla", env=variables)
    assert f"{size:.1f} MB\n  not used: other users can write to it, and cyxla runs" in ended.stdout
    assert "  CYXLA_PERF_MAP=maybe (ignored: only 1 has an effect)\n" in ended.stdout


_ONE_PROGRAM = """
import os, jax, jax.numpy as jnp, numpy as np, cyxla
program = cyxla.lower(jnp.max, [jax.ShapeDtypeStruct((3,), "f4")], platform="cpu")
cyxla.initialize()
for name in ("XLA_FLAGS", "PJRT_NPROC"):
    os.environ.pop(name, None)
executable, statistics = cyxla.compile_program(program)
print(statistics.from_cache, executable.run([np.array([1, np.nan, 3], "f4")])[0])
"""


def test_the_key_has_the_variables_that_the_plugin_read(tmp_path: Path) -> None:
    """XLA reads the flags when the plugin is loaded; a program may change them later."""
    library = "xla_cpu_pjrt.so"
    flags = {"XLA_FLAGS": "--xla_cpu_enable_fast_min_max=false"}
    assert _lines(tmp_path, library, _ONE_PROGRAM, **flags) == ["False nan"]
    assert _lines(tmp_path, library, _ONE_PROGRAM) == ["False 3.0"]
    assert _lines(tmp_path, library, _ONE_PROGRAM, PJRT_NPROC="1") == ["False 3.0"]
    assert _lines(tmp_path, library, _ONE_PROGRAM, **flags) == ["True nan"]


def test_flags_in_a_file_give_no_cache(tmp_path: Path) -> None:
    library, file, folder = "xla_cpu_pjrt.so", tmp_path / "flags", tmp_path / "cache"
    for value, maximum in (("true", "3.0"), ("false", "nan")):
        file.write_text(f"--xla_cpu_enable_fast_min_max={value}")
        lines = _lines(folder, library, _ONE_PROGRAM, XLA_FLAGS=str(file))
        assert lines == [f"False {maximum}"]
    assert entries(folder) == []
