# SPDX-License-Identifier: Apache-2.0
# The plan of src/direct as plain Python data, for cyxla.library.

class Slice(NamedTuple):
    """Part of an allocation; `allocation` is an index into Plan.allocations."""

    allocation: int
    offset: int
    size_bytes: int


class KernelStep(NamedTuple):
    """Calls a kernel; `slices` are its arguments, then its results."""

    kernel: str
    slices: tuple[Slice, ...]


class CopyStep(NamedTuple):
    """Copies elements from one layout to another; without dimensions the source's bytes.

    A dimension is its size, the source's stride and the destination's stride in bytes; the
    destination's slowest dimension is first.
    """

    source: Slice
    destination: Slice
    element_bytes: int
    dimensions: tuple[tuple[int, int, int], ...]


class WhileStep(NamedTuple):
    """Repeats the body `trip_count` times; if None, while the byte at `result` is not 0 after the condition."""

    condition: tuple[object, ...]
    body: tuple[object, ...]
    result: Slice
    trip_count: int | None


class ConditionalStep(NamedTuple):
    """Runs a branch: a predicate selects the first if true; a 32-bit index out of range the last."""

    branch_index: Slice
    is_predicate: bool
    branches: tuple[tuple[object, ...], ...]


class Allocation(NamedTuple):
    """A block of memory: 'input', 'output', 'constant' or 'private'.

    `number` is that of the input or output, `copied_input` the number of a donated input that an output begins with,
    `contents` the bytes of a constant.
    """

    kind: str
    size_bytes: int
    number: int
    copied_input: int | None
    contents: bytes


Step = KernelStep | CopyStep | WhileStep | ConditionalStep


class Plan(NamedTuple):
    """A program as kernels and copies over allocations; `inputs` and `outputs` are indices of allocations."""

    allocations: tuple[Allocation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    kernels: tuple[str, ...]
    steps: tuple[object, ...]
    has_unbounded_loop: bool


cdef object slice_to_python(const CoreSlice& slice_):
    return Slice(slice_.allocation, slice_.offset, slice_.size_bytes)


cdef object kernel_to_python(const CorePlan& plan, const CoreKernelStep& step):
    cdef size_t i
    slices = [slice_to_python(step.slices[i]) for i in range(step.slices.size())]
    return KernelStep(plan.kernels[step.kernel].decode(), tuple(slices))


cdef object copy_to_python(const CoreCopyStep& step):
    cdef size_t i
    dimensions = [
        (step.dimensions[i].size, step.dimensions[i].source_stride_bytes,
         step.dimensions[i].destination_stride_bytes)
        for i in range(step.dimensions.size())
    ]
    return CopyStep(
        slice_to_python(step.source), slice_to_python(step.destination), step.element_bytes, tuple(dimensions)
    )


cdef object step_to_python(const CorePlan& plan, const CoreStep& step):
    cdef const CoreKernelStep* kernel = step_if[CoreKernelStep](step)
    cdef const CoreCopyStep* copy = step_if[CoreCopyStep](step)
    cdef const CoreWhileStep* loop = step_if[CoreWhileStep](step)
    cdef const CoreConditionalStep* conditional = step_if[CoreConditionalStep](step)
    cdef size_t i
    if kernel != NULL:
        return kernel_to_python(plan, kernel[0])
    if copy != NULL:
        return copy_to_python(copy[0])
    if loop != NULL:
        return WhileStep(
            steps_to_python(plan, loop.condition),
            steps_to_python(plan, loop.body),
            slice_to_python(loop.condition_result),
            loop.trip_count.value() if loop.trip_count.has_value() else None,
        )
    branches = [steps_to_python(plan, conditional.branches[i]) for i in range(conditional.branches.size())]
    return ConditionalStep(slice_to_python(conditional.index), conditional.is_predicate, tuple(branches))


cdef tuple steps_to_python(const CorePlan& plan, const vector[CoreStep]& steps):
    cdef size_t i
    return tuple([step_to_python(plan, steps[i]) for i in range(steps.size())])


cdef object allocation_to_python(const CoreAllocation& allocation):
    kind = (
        "input" if allocation.kind == AllocationKind.kInput
        else "output" if allocation.kind == AllocationKind.kOutput
        else "constant" if allocation.kind == AllocationKind.kConstant
        else "private"
    )
    copied = allocation.copied_input.value() if allocation.copied_input.has_value() else None
    return Allocation(kind, allocation.size_bytes, allocation.number, copied, allocation.bytes)


def read_plan(bytes serialized not None, input_bytes, output_bytes):
    """Read the plan of a program that an XLA:CPU plugin serialized, with inputs and outputs of these sizes in bytes.

    Raises UnsupportedError with the reason for a program that only the plugin can run.
    """
    cdef CorePlan plan = plan_of(serialized, input_bytes, output_bytes)
    cdef size_t i
    allocations = [allocation_to_python(plan.allocations[i]) for i in range(plan.allocations.size())]
    return Plan(
        tuple(allocations),
        tuple(plan.inputs),
        tuple(plan.outputs),
        tuple([plan.kernels[i].decode() for i in range(plan.kernels.size())]),
        steps_to_python(plan, plan.steps),
        plan.has_unbounded_loop,
    )
