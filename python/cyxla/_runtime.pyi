# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

import numpy.typing as npt

from cyxla.compilation.settings import CompileRequest
from cyxla.compilation.statistics import CompileStatistics
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

class Measured(NamedTuple):
    seconds: float
    program_bytes: int
    code_bytes: int | None
    argument_bytes: int | None
    output_bytes: int | None
    temporary_bytes: int | None
    flops: float | None
    instructions: int | None

class Compiled(NamedTuple):
    executable: Executable
    measured: Measured
    serialized: bytes
    marks_donation: bool

class Slice(NamedTuple):
    allocation: int
    offset: int
    size_bytes: int

class KernelStep(NamedTuple):
    kernel: str
    slices: tuple[Slice, ...]

class CopyStep(NamedTuple):
    source: Slice
    destination: Slice
    element_bytes: int
    dimensions: tuple[tuple[int, int, int], ...]

class WhileStep(NamedTuple):
    condition: tuple[Step, ...]
    body: tuple[Step, ...]
    result: Slice
    trip_count: int | None

class ConditionalStep(NamedTuple):
    branch_index: Slice
    is_predicate: bool
    branches: tuple[tuple[Step, ...], ...]

Step = KernelStep | CopyStep | WhileStep | ConditionalStep

class Allocation(NamedTuple):
    kind: str
    size_bytes: int
    number: int
    copied_input: int | None
    contents: bytes

class Plan(NamedTuple):
    allocations: tuple[Allocation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    kernels: tuple[str, ...]
    steps: tuple[Step, ...]
    has_unbounded_loop: bool

def read_plan(
    serialized: bytes, input_bytes: Sequence[int], output_bytes: Sequence[int]
) -> Plan: ...
def set_statistics(executable: Executable, statistics: CompileStatistics) -> None: ...
def load_runtime(
    path: str,
    create_options: Mapping[str, object],
    threads: int | None = None,
) -> LoadedPlugin: ...
def loaded_runtime() -> LoadedPlugin | None: ...
def shutdown() -> None: ...
def compile_code(request: CompileRequest, code: bytes) -> Compiled: ...
def load_code(request: CompileRequest, serialized: bytes, marks_donation: bool) -> Compiled: ...
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
