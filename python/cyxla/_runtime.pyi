# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

import numpy.typing as npt

from cyxla.compiled_pair import CompileStatistics
from cyxla.dtypes import ArrayType

ABI_VERSION: Final[int]

class LoadedPlugin(NamedTuple):
    api_version: tuple[int, int]
    platform_name: str
    platform_version: str
    stablehlo_version: str | None
    attributes: dict[str, object]
    aliased_inputs: bool
    inplace_outputs: bool
    dropped_options: tuple[str, ...]

@final
class Executable:
    @property
    def name(self) -> str: ...
    @property
    def route(self) -> str: ...
    @property
    def route_reason(self) -> str: ...
    @property
    def statistics(self) -> CompileStatistics: ...
    @property
    def input_types(self) -> tuple[ArrayType, ...]: ...
    @property
    def output_types(self) -> tuple[ArrayType, ...]: ...
    @property
    def input_bytes(self) -> tuple[int, ...]: ...
    @property
    def output_bytes(self) -> tuple[int, ...]: ...
    def run(
        self,
        arrays: Sequence[npt.ArrayLike],
        out: Sequence[npt.NDArray[Any] | None] | None = None,
    ) -> tuple[npt.NDArray[Any], ...]: ...
    def bind(
        self,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any] | None] | None = None,
        *,
        fresh: bool = False,
    ) -> BoundCall: ...
    def warm_up(self, inputs: Sequence[npt.ArrayLike] | None = None, calls: int = 3) -> None: ...

@final
class BoundCall:
    @property
    def inputs(self) -> tuple[npt.NDArray[Any], ...]: ...
    @property
    def outputs(self) -> tuple[npt.NDArray[Any] | None, ...] | None: ...
    def __call__(self) -> tuple[npt.NDArray[Any], ...]: ...

def set_statistics(executable: Executable, statistics: CompileStatistics) -> None: ...
def load_runtime(
    path: str, create_options: Mapping[str, object], optional: frozenset[str]
) -> LoadedPlugin: ...
def loaded_runtime() -> LoadedPlugin | None: ...
def shutdown() -> None: ...
def compile_code(
    code: bytes,
    code_format: str,
    overrides: Mapping[str, bool | int | float | str],
    name: str,
    inputs: Sequence[ArrayType],
    outputs: Sequence[ArrayType],
    needs_python: bool,
    input_names: Sequence[str] | None = None,
    in_place_outputs: Sequence[int] = (),
    route: str = "pjrt",
    route_reason: str = "",
    may_fork: bool = True,
    *,
    output_names: Sequence[str] | None = None,
    debug_options: bytes = b"",
    host_callbacks: object = None,
    keep: bool = False,
) -> tuple[Executable, dict[str, Any]]: ...
def load_code(
    serialized: bytes,
    name: str,
    inputs: Sequence[ArrayType],
    outputs: Sequence[ArrayType],
    marks_donation: bool,
    input_names: Sequence[str] | None = None,
    in_place_outputs: Sequence[int] = (),
    route: str = "pjrt",
    route_reason: str = "",
    may_fork: bool = True,
    *,
    output_names: Sequence[str] | None = None,
) -> Executable: ...
def write_program_file(
    name: str,
    platform: str,
    artifact: bytes,
    text: str,
    inputs: Sequence[tuple[str, int, tuple[int, ...]]],
    outputs: Sequence[tuple[str, int, tuple[int, ...]]],
    custom_call_targets: Sequence[str],
    flops: float | None,
    stablehlo_version: str,
    jax_version: str,
    cyxla_version: str,
) -> bytes: ...
def read_program_file(content: bytes) -> dict[str, Any]: ...
def use_host_callbacks(answer: Callable[..., object]) -> bool: ...
def host_callback_handlers() -> dict[str, int]: ...
def register_ffi_handler(
    name: str, platform: str, address: int
) -> tuple[tuple[int, int], tuple[int, int]]: ...
def register_gpu_custom_call(name: str, api_version: int, stages: Mapping[str, int]) -> None: ...
def serialize(executable: Executable) -> bytes: ...
def program_facts(executable: Executable) -> dict[str, Any] | None: ...
def device_description() -> tuple[str, str, dict[str, object], int]: ...
def direct_refusal(may_fork: bool = True) -> str: ...
def error_info() -> tuple[int, str]: ...
def itemsize(element_type: int) -> int: ...
