# SPDX-License-Identifier: Apache-2.0
"""FFI targets: functions of native code that programs call by name, as custom calls.

Programs with linear algebra call LAPACK through handlers that jaxlib ships. They are registered
with the plugin when the runtime is initialized, and so are the user's own. Registering cannot be
undone, and of two functions with one name a plugin keeps the first without a word: hence the table
here. Handlers that were built for a newer XLA FFI than the plugin's are adapted to it; what became
of each is kept for the errors of programs that miss one.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from cyxla.errors import ArgumentError, Error, UnsupportedError, refuse_reload
from cyxla.ffi.gpu import gpu_targets
from cyxla.ffi.jaxlib import cpu_targets
from cyxla.plugins.options import is_utf8

__all__ = [
    "Registration",
    "attach",
    "jaxlib_registered",
    "platform_targets",
    "register_ffi_target",
    "register_own",
    "registration",
]

refuse_reload(__name__, "_targets" in globals())

# A version of XLA's FFI: major and minor.
_Version = tuple[int, int]
# Takes a name, XLA's name of the platform and a handler's address; returns the versions that the
# handler and the plugin were built for.
_Register = Callable[[str, str, int], tuple[_Version, _Version]]
# Takes a name, the version of the API and the addresses of a handler's functions by stage.
_RegisterGpu = Callable[[str, int, Mapping[str, int]], None]

# The names by which XLA knows the platforms of JAX; "gpu" is JAX's name for two of them.
_XLA_PLATFORMS = {
    "cpu": frozenset({"Host"}),
    "host": frozenset({"Host"}),
    "cuda": frozenset({"CUDA"}),
    "rocm": frozenset({"ROCM"}),
    "gpu": frozenset({"CUDA", "ROCM"}),
    "tpu": frozenset({"TPU"}),
}

# JAX's own handlers for Python callbacks read state that only JAX's own client sets up; with any
# other client they crash the process.
_CALLBACK_TARGETS = frozenset(
    f"xla_{kind}_python_{device}_callback"
    for kind in ("ffi", "ffi_partitioned", "buffer")
    for device in ("cpu", "gpu")
)

_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Target(NamedTuple):
    platforms: frozenset[str] | None  # XLA's names, None for the plugin's whatever it is
    address: int
    capsule: object  # holds the function's memory for the life of the process

    def is_for(self, platforms: frozenset[str] | None) -> bool:
        return self.platforms is None or platforms is None or bool(self.platforms & platforms)


class _Attached(NamedTuple):
    platform: str
    register: _Register
    register_gpu: _RegisterGpu


class Registration(NamedTuple):
    """What became of a target that was offered to the process's plugin.

    Attributes:
        is_usable: whether programs can call it.
        description: "registered as it is (XLA FFI 0.3)", "adapted from XLA FFI 0.5 to the plugin's
            0.2", or why it was refused.
    """

    is_usable: bool
    description: str


_lock = threading.RLock()
_targets: dict[str, list[_Target]] = {}
_own_targets: dict[str, _Target] = {}
_registrations: dict[str, Registration] = {}
_attached: _Attached | None = None
_jaxlib_count = 0
_jaxlib_fault: str | None = "the runtime is not initialized"


def register_ffi_target(
    name: str, target: object, platform: str | None = None, api_version: int = 1
) -> None:
    """Register a handler of XLA's typed FFI under a name, as `jax.ffi.register_ffi_target` does.

    Before the runtime is initialized the target is kept for `initialize(jax_targets=True)`;
    afterwards it is registered with the plugin at once. Registering the same function again does
    nothing. A handler registered before under a name of jaxlib's takes jaxlib's place. One that was
    built for a newer XLA FFI than the plugin's, up to 0.5, is adapted to it.

    Args:
        name: the target's name, as in `jax.ffi.ffi_call`.
        target: a PyCapsule with the handler's address (see `jax.ffi.pycapsule`), or a dict with
            that capsule as "execute".
        platform: the platform that the handler is for: "cpu", "cuda", "rocm", "gpu" or "tpu". None
            means that of the process's plugin.
        api_version: 1, the typed FFI.

    Raises:
        ArgumentError: not a capsule, an unknown platform, or a name that has another function.
        UnsupportedError: the old API (0), stages other than "execute", a handler that needs JAX's
            own client, a plugin without FFI, a handler built for an XLA FFI that is newer than the
            plugin's and than the newest that can be adapted, or of another major version, or one
            adapted handler more than the 256 that fit in a process.
        PluginError: the plugin does not keep the handler: with its reason, such as that it has one
            of that name itself.

    What the plugin has against a handler is raised here only once it is loaded; before, it becomes
    a RuntimeWarning of `initialize`.
    """
    if not isinstance(name, str) or not name or not is_utf8(name):
        raise ArgumentError(f"the name of an FFI target is a str of Unicode text, not {name!r}")
    if api_version != 1:
        raise UnsupportedError(
            f"FFI target {name!r} has api_version={api_version!r}; only 1, the typed FFI, is "
            "supported: port the handler to XLA_FFI_DEFINE_HANDLER"
        )
    if name in _CALLBACK_TARGETS:
        raise UnsupportedError(
            f"FFI target {name!r} is JAX's handler for Python callbacks; it works with JAX's own "
            "client only"
        )
    capsule = _execute_stage(name, target)
    address = _address(name, capsule)
    with _lock:
        platforms = _xla_platforms(name, platform)
        _add(name, _Target(platforms, address, capsule))


def register_own(name: str, address: int, keep: object = None) -> None:
    """Register a handler of cyxla's own, under any name, with the plugin or for the next one.

    Unlike a user's it is registered whatever `jax_targets` says. `keep` is held for the life of the
    process: the handler's memory. Errors as for `register_ffi_target`, for a plugin that is loaded.
    """
    target = _Target(None, address, keep)
    with _lock:
        if _attached is not None:
            _add(name, target)
        _own_targets.setdefault(name, target)


def registration(name: str) -> Registration | None:
    """Return what became of a target; None if nobody offered it to the process's plugin."""
    return _registrations.get(name)


def platform_targets(
    platform: str, library: Path | None = None
) -> Iterator[tuple[str, object, int]]:
    """Yield name, capsule or dict, and API version of the handlers that JAX's packages ship.

    Raises:
        ImportError: the packages are not installed.
    """
    if platform == "cpu":
        yield from cpu_targets()
    yield from gpu_targets(platform, library)


def attach(
    platform: str,
    register: _Register,
    *,
    register_earlier: bool,
    register_gpu: _RegisterGpu | None = None,
    library: Path | None = None,
) -> None:
    """Register targets with the plugin that was just loaded, and later ones as they come.

    With `register_earlier` the targets that were registered before and those of jaxlib follow at
    once; without, the former are forgotten. What the plugin does not take is a RuntimeWarning for
    a target of the user's: by now the plugin cannot be given back.
    """
    global _attached, _jaxlib_count, _jaxlib_fault
    with _lock:
        earlier = {name: list(targets) for name, targets in _targets.items()}
        _targets.clear()
        _attached = _Attached(platform, register, register_gpu or _refuse_gpu)
        for name, target in _own_targets.items():
            _offer(name, target)
        if not register_earlier:
            _jaxlib_fault = "initialized with jax_targets=False"
            return
        for name, targets in earlier.items():
            for target in targets:
                error = _offer(name, target)
                if error is not None:
                    warnings.warn(
                        f"the FFI target {name!r} was not registered: {error}",
                        RuntimeWarning,
                        stacklevel=4,
                    )
        _jaxlib_count, _jaxlib_fault = _register_jaxlib_targets(_attached, library)


def _offer(name: str, target: _Target) -> Error | None:
    """Add a target; return the error instead of raising it."""
    try:
        _add(name, target)
    except Error as error:
        return error
    return None


def jaxlib_registered() -> tuple[int, str | None]:
    """Return how many of jaxlib's handlers are registered, and why the others are not."""
    return _jaxlib_count, _jaxlib_fault


def _add(name: str, target: _Target) -> None:
    known = _targets.get(name, [])
    for other in known:
        if other.address == target.address and other.platforms in (None, target.platforms):
            return
        if other.address != target.address and other.is_for(target.platforms):
            raise ArgumentError(
                f"FFI target {name!r} is registered already, with another function, and a name "
                "keeps its first function: choose another name"
            )
    if _attached is not None:
        own = _own_platforms(_attached.platform)
        if target.is_for(own):
            _registrations[name] = _register(name, target, _attached, own)
    _targets[name] = [*known, target]


def _register(
    name: str, target: _Target, attached: _Attached, platforms: frozenset[str]
) -> Registration:
    try:
        for platform in platforms:
            handler, plugin = attached.register(name, platform, target.address)
    except Error as error:
        _registrations[name] = Registration(False, str(error))
        raise
    version = ".".join(map(str, handler))
    if handler <= plugin:
        return Registration(True, f"registered as it is (XLA FFI {version})")
    own = ".".join(map(str, plugin))
    return Registration(True, f"adapted from XLA FFI {version} to the plugin's {own}")


def _register_jaxlib_targets(attached: _Attached, library: Path | None) -> tuple[int, str | None]:
    platform = attached.platform
    count = 0
    fault: Exception | None = None
    # Programs that call none of them run without; those that do say which one is missing.
    try:
        for name, handler, api_version in platform_targets(platform, library):
            if name in _CALLBACK_TARGETS or name in _targets:
                continue
            stages = handler if isinstance(handler, dict) else {"execute": handler}
            addresses = {stage: _address(name, capsule) for stage, capsule in stages.items()}
            target = _Target(_own_platforms(platform), addresses["execute"], handler)
            error = (
                _offer(name, target)
                if platform == "cpu"
                else _offer_gpu(name, target, api_version, addresses, attached)
            )
            count += error is None
            fault = fault or error
    except ImportError as error:
        fault = error
    if fault is None and not count:
        return 0, f"JAX's packages have none for platform {platform!r}"
    return count, None if fault is None else f"{type(fault).__name__}: {fault}"


def _offer_gpu(
    name: str,
    target: _Target,
    api_version: int,
    addresses: Mapping[str, int],
    attached: _Attached,
) -> Error | None:
    """Register a handler of several stages, or of the old API; return the error if there is one."""
    try:
        attached.register_gpu(name, api_version, addresses)
    except Error as error:
        _registrations[name] = Registration(False, str(error))
        return error
    _registrations[name] = Registration(True, "registered as a custom call on GPUs")
    _targets[name] = [target]
    return None


def _refuse_gpu(name: str, api_version: int, addresses: Mapping[str, int]) -> None:
    raise UnsupportedError(f"the plugin takes no custom calls on GPUs, such as {name!r}")


def _xla_platforms(name: str, platform: str | None) -> frozenset[str] | None:
    if platform is None:
        return None
    if not isinstance(platform, str):
        raise ArgumentError(f"platform of the FFI target {name!r} is {platform!r}, not a name")
    if platform.lower() in _XLA_PLATFORMS:
        return _XLA_PLATFORMS[platform.lower()]
    if _attached is not None and platform == _attached.platform:
        return _own_platforms(platform)
    raise ArgumentError(
        f"unknown platform {platform!r} of the FFI target {name!r}; known are "
        f"{', '.join(_XLA_PLATFORMS)}, and None for that of the process's plugin"
    )


def _own_platforms(platform: str) -> frozenset[str]:
    """Return XLA's name for a plugin's platform; an unknown one is called by its own name."""
    return _XLA_PLATFORMS.get(platform, frozenset({platform}))


def _execute_stage(name: str, target: object) -> object:
    if not isinstance(target, dict):
        return target
    others = sorted(str(stage) for stage in target if stage != "execute")
    if others:
        raise UnsupportedError(
            f"FFI target {name!r} has the stages {', '.join(others)}; only a handler whose one "
            "stage is 'execute' is supported"
        )
    if "execute" not in target:
        raise ArgumentError(f"FFI target {name!r} is a dict without the stage 'execute'")
    stage: object = target["execute"]
    return stage


def _address(name: str, capsule: object) -> int:
    try:
        address = _capsule_pointer(capsule, _capsule_name(capsule))
    except ValueError:
        address = None
    if not address:
        raise ArgumentError(
            f"FFI target {name!r} is {capsule!r} ({type(capsule).__name__}), not a PyCapsule with "
            "a handler's address; wrap a ctypes function with jax.ffi.pycapsule"
        )
    return int(address)
