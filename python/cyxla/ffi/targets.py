# SPDX-License-Identifier: Apache-2.0
"""FFI targets: native functions that programs call by name, as custom calls.

Linear algebra calls LAPACK through jaxlib's handlers. These and the user's are registered with the
plugin when the runtime is initialized. The table here detects duplicate names: a registration is
permanent, and a plugin silently ignores a second function of the same name. Handlers built for a
newer XLA FFI than the plugin's are adapted. Each registration's outcome is kept for error messages.
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

# Major and minor version of XLA's FFI.
_Version = tuple[int, int]
# Takes a target's name, XLA's name of the platform and a handler's address; returns the FFI
# versions of the handler and the plugin.
_Register = Callable[[str, str, int], tuple[_Version, _Version]]
# Takes a target's name, the API version and the addresses of the handler's functions by stage.
_RegisterGpu = Callable[[str, int, Mapping[str, int]], None]

# XLA's names of JAX's platforms; "gpu" is JAX's name for two of them.
_XLA_PLATFORMS = {
    "cpu": frozenset({"Host"}),
    "host": frozenset({"Host"}),
    "cuda": frozenset({"CUDA"}),
    "rocm": frozenset({"ROCM"}),
    "gpu": frozenset({"CUDA", "ROCM"}),
    "tpu": frozenset({"TPU"}),
}

# JAX's handlers for Python callbacks read state that only JAX's own client sets up; they crash with
# any other client.
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
    platforms: frozenset[str] | None  # XLA's names, None for the plugin's platform
    address: int
    capsule: object  # keeps the function's memory alive for the process's lifetime

    def is_for(self, platforms: frozenset[str] | None) -> bool:
        return self.platforms is None or platforms is None or bool(self.platforms & platforms)


class _Attached(NamedTuple):
    platform: str
    register: _Register
    register_gpu: _RegisterGpu


class Registration(NamedTuple):
    """The outcome of a target's registration with the process's plugin.

    Attributes:
        is_usable: whether programs can call it.
        description: "registered unchanged (XLA FFI 0.3)", "adapted from XLA FFI 0.5 to the plugin's
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

    Before the runtime is initialized, the target is kept for `initialize(jax_targets=True)`; later
    it is registered with the plugin at once. Registering the same function again has no effect. A
    handler that is registered before initialization replaces jaxlib's handler of the same name. A
    handler built for a newer XLA FFI than the plugin's, up to 0.5, is adapted to it.

    Args:
        name: the target's name, as in `jax.ffi.ffi_call`.
        target: a PyCapsule with the handler's address (see `jax.ffi.pycapsule`), or a dict with
            that capsule as "execute".
        platform: the handler's platform: "cpu", "cuda", "rocm", "gpu" or "tpu". None means the
            platform of the process's plugin.
        api_version: 1, the typed FFI.

    Raises:
        ArgumentError: the target is not a capsule, the platform is unknown, or the name already has
            another function.
        UnsupportedError: the handler uses the old API (0), has stages other than "execute", or
            needs JAX's own client; the plugin has no FFI; the handler's XLA FFI has another major
            version or is too new to adapt; or the process already has 256 adapted handlers.
        PluginError: the plugin refused the handler, for example because it defines the name itself.

    Errors from the plugin are raised here only if it is loaded; otherwise `initialize` issues a
    RuntimeWarning.
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
    """Register one of cyxla's own handlers, now or when a plugin is loaded.

    Unlike a user's handler, it does not depend on `jax_targets`. `keep` owns the handler's memory
    and lives as long as the process. If the plugin is loaded, raises like `register_ffi_target`.
    """
    target = _Target(None, address, keep)
    with _lock:
        if _attached is not None:
            _add(name, target)
        _own_targets.setdefault(name, target)


def registration(name: str) -> Registration | None:
    """Return the outcome of a target's registration, None if it was never registered."""
    return _registrations.get(name)


def platform_targets(
    platform: str, library: Path | None = None
) -> Iterator[tuple[str, object, int]]:
    """Yield name, capsule or dict, and API version of each handler in JAX's packages.

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

    With `register_earlier`, registers jaxlib's targets and those that the user registered earlier;
    without it, drops the latter. A refused user's target is only a RuntimeWarning, because the
    plugin is already loaded.
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
                f"FFI target {name!r} is already registered with another function, and "
                "registrations are permanent: choose another name"
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
        return Registration(True, f"registered unchanged (XLA FFI {version})")
    own = ".".join(map(str, plugin))
    return Registration(True, f"adapted from XLA FFI {version} to the plugin's {own}")


def _register_jaxlib_targets(attached: _Attached, library: Path | None) -> tuple[int, str | None]:
    platform = attached.platform
    count = 0
    fault: Exception | None = None
    # A program that needs a missing handler fails to compile with an error that names it.
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
    """Register a GPU handler, which may have stages or the old API; return the error, if any."""
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
        f"{', '.join(_XLA_PLATFORMS)}, and None for the platform of the process's plugin"
    )


def _own_platforms(platform: str) -> frozenset[str]:
    """Return XLA's names for a plugin's platform; an unknown platform keeps its name."""
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
