# SPDX-License-Identifier: Apache-2.0
"""Writes the C function of a program as LLVM IR: the steps of its plan, around XLA's kernels.

The function takes a pointer for each input, then for each output, then, if it needs one, to the
caller's workspace. It calls the kernels through the frames that XLA gave them, which the optimizer
removes once they are inlined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cyxla._runtime import Allocation, ConditionalStep, CopyStep, Plan, Slice, Step, WhileStep

# Temporaries of up to this size together lie on the stack.
STACK_BYTES: Final = 16 * 1024
_ALIGNMENT: Final = 64
# XLA_CPU_KernelCallFrame: pointers to the numbers of work groups and the ids of this one, the
# number of arguments, a pointer to them; an argument is a pointer and a size. The kernels' IR has
# these offsets also for targets with pointers of four bytes.
_FRAME_BYTES: Final = 32
_FRAME_ARGUMENTS: Final = 24
_ARGUMENT_BYTES: Final = 16
_WORK_GROUP_BYTES: Final = 24


class Source(NamedTuple):
    """A function as a module of LLVM IR.

    Attributes:
        name: its symbol.
        text: the module, which declares the kernels that it calls.
        kernels: for each kernel's symbol the module that defines it.
        workspace_bytes: the size of the workspace; 0 if it has no such parameter.
        apart: the kernels that must be compiled as they are, by themselves.
    """

    name: str
    text: str
    kernels: dict[str, str]
    workspace_bytes: int
    apart: frozenset[str] = frozenset()


class _Memory(NamedTuple):
    """Where temporaries lie.

    Attributes:
        stack: the alloca of a slice.
        workspace: the offset of an allocation in the workspace.
        spares: for outputs that callers may leave out, the offset of what stands for them, or None
            for the stack.
        workspace_bytes: the size of the workspace.
    """

    stack: dict[Slice, str]
    workspace: dict[int, int]
    spares: dict[int, int | None]
    workspace_bytes: int


def write_function(
    name: str, plan: Plan, kernels: dict[str, str], optional: frozenset[int] = frozenset()
) -> Source:
    """Write the function of a plan; outputs with a number in `optional` may be null pointers."""
    writer = _FunctionWriter(plan, optional)
    writer.begin()
    writer.add_steps(plan.steps)
    workspace_bytes = writer.memory.workspace_bytes
    parameters = [f"ptr noalias readonly %in{i}" for i in range(len(plan.inputs))]
    parameters += [f"ptr noalias %out{i}" for i in range(len(plan.outputs))]
    if workspace_bytes:
        parameters.append("ptr noalias %workspace")
    lines = [
        *_constants(plan.allocations),
        *_shims(plan),
        f"define void @{quoted(name)}({', '.join(parameters)}) nounwind {{",
        "entry:",
        *writer.lines,
        "  ret void",
        "}",
    ]
    return Source(name, "\n".join([*lines, ""]), kernels, workspace_bytes)


def quoted(name: str) -> str:
    """Return a name as an identifier of LLVM IR, without its sign."""
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in name.encode()
    )
    return f'"{escaped}"'


def _constants(allocations: Iterable[Allocation]) -> Iterator[str]:
    for index, allocation in enumerate(allocations):
        if allocation.kind == "constant":
            content = "".join(f"\\{byte:02X}" for byte in allocation.contents)
            yield (
                f"@constant.{index} = private unnamed_addr constant"
                f' [{len(allocation.contents)} x i8] c"{content}", align {_ALIGNMENT}'
            )


def _shims(plan: Plan) -> Iterator[str]:
    """Write a function for each kernel that makes its call frame."""
    for kernel, count in sorted(_kernels(plan.steps)):
        arguments = ", ".join(f"ptr %a{i}" for i in range(count))
        yield f"declare ptr @{quoted(kernel)}(ptr)"
        yield f"define internal void @{_shim(kernel, count)}({arguments}) alwaysinline nounwind {{"
        yield f"  %frame = alloca [{_FRAME_BYTES} x i8], align 16"
        yield f"  %arguments = alloca [{_ARGUMENT_BYTES * max(count, 1)} x i8], align 16"
        for name, value in (("groups", 1), ("ids", 0)):
            yield f"  %{name} = alloca [{_WORK_GROUP_BYTES} x i8], align 16"
            for i in range(3):
                yield f"  %{name}{i} = getelementptr i8, ptr %{name}, i32 {8 * i}"
                yield f"  store i64 {value}, ptr %{name}{i}"
        yield "  %frame.ids = getelementptr i8, ptr %frame, i32 8"
        yield "  %frame.count = getelementptr i8, ptr %frame, i32 16"
        yield f"  %frame.arguments = getelementptr i8, ptr %frame, i32 {_FRAME_ARGUMENTS}"
        yield "  store ptr %groups, ptr %frame"
        yield "  store ptr %ids, ptr %frame.ids"
        yield f"  store i64 {count}, ptr %frame.count"
        yield "  store ptr %arguments, ptr %frame.arguments"
        for i in range(count):
            yield f"  %p{i} = getelementptr i8, ptr %arguments, i32 {_ARGUMENT_BYTES * i}"
            yield f"  store ptr %a{i}, ptr %p{i}"
        yield f"  %error = call ptr @{quoted(kernel)}(ptr %frame)"
        yield "  ret void"
        yield "}"


def _shim(kernel: str, count: int) -> str:
    return quoted(f"call.{count}.{kernel}")


def _kernels(steps: Iterable[Step]) -> set[tuple[str, int]]:
    from cyxla._runtime import KernelStep

    return {(step.kernel, len(step.slices)) for step in walk(steps) if isinstance(step, KernelStep)}


def walk(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps, and those inside loops and conditionals after the step that has them."""
    from cyxla._runtime import ConditionalStep, WhileStep

    for step in steps:
        yield step
        if isinstance(step, WhileStep):
            yield from walk((*step.condition, *step.body))
        elif isinstance(step, ConditionalStep):
            for branch in step.branches:
                yield from walk(branch)


def _slices(step: Step) -> tuple[Slice, ...]:
    from cyxla._runtime import CopyStep, KernelStep, WhileStep

    if isinstance(step, KernelStep):
        return step.slices
    if isinstance(step, CopyStep):
        return (step.source, step.destination)
    return (step.result,) if isinstance(step, WhileStep) else (step.branch_index,)


def _is_temporary(slice_: Slice, allocations: tuple[Allocation, ...]) -> bool:
    """Tell whether no caller sees this memory.

    XLA also puts temporaries into the memory of an output before the output is written there.
    """
    allocation = allocations[slice_.allocation]
    is_whole = slice_.offset == 0 and slice_.size_bytes == allocation.size_bytes
    return allocation.kind == "private" or (allocation.kind == "output" and not is_whole)


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGNMENT) * _ALIGNMENT


def _place(plan: Plan, optional: frozenset[int]) -> _Memory:
    """Give each temporary a place: the smallest on the stack, the others in the workspace.

    Every slice is one of XLA's buffers, and no buffer is read through another slice. So those on
    the stack lie apart, where the optimizer can make values of them.
    """
    slices = {slice_ for step in walk(plan.steps) for slice_ in _slices(step)}
    temporaries = sorted(
        (slice_ for slice_ in slices if _is_temporary(slice_, plan.allocations)),
        key=lambda slice_: (slice_.size_bytes, slice_),
    )
    stack: dict[Slice, str] = {}
    workspace: dict[int, int] = {}
    stack_bytes = workspace_bytes = 0
    for slice_ in temporaries:
        stack_bytes += _rounded(slice_.size_bytes)
        if stack_bytes <= STACK_BYTES:
            stack[slice_] = f"%temporary{len(stack)}"
        elif slice_.allocation not in workspace:
            workspace[slice_.allocation] = workspace_bytes
            workspace_bytes += _rounded(plan.allocations[slice_.allocation].size_bytes)
    spares: dict[int, int | None] = {}
    for number in sorted(optional):
        size_bytes = _rounded(plan.allocations[plan.outputs[number]].size_bytes)
        stack_bytes += size_bytes
        spares[number] = None if stack_bytes <= STACK_BYTES else workspace_bytes
        workspace_bytes += 0 if spares[number] is None else size_bytes
    return _Memory(stack, workspace, spares, workspace_bytes)


class _FunctionWriter:
    """Writes the instructions of the function's body, one step after the other."""

    def __init__(self, plan: Plan, optional: frozenset[int]) -> None:
        self.lines: list[str] = []
        self.memory = _place(plan, optional)
        self._plan = plan
        self._count = 0
        self._block = "entry"
        self._outputs = [f"%out{i}" for i in range(len(plan.outputs))]

    def begin(self) -> None:
        """Reserve the stack, and write what comes before the first step."""
        for slice_, name in self.memory.stack.items():
            self._alloca(name, slice_.size_bytes)
        for number, offset in self.memory.spares.items():
            spare, missing, output = (f"%{word}{number}" for word in ("spare", "missing", "output"))
            if offset is None:
                size_bytes = self._plan.allocations[self._plan.outputs[number]].size_bytes
                self._alloca(spare, size_bytes)
            else:
                self._add(f"{spare} = getelementptr i8, ptr %workspace, i64 {offset}")
            self._add(f"{missing} = icmp eq ptr %out{number}, null")
            self._add(f"{output} = select i1 {missing}, ptr {spare}, ptr %out{number}")
            self._outputs[number] = output
        for number, index in enumerate(self._plan.outputs):
            allocation = self._plan.allocations[index]
            if allocation.copied_input is not None:
                self._copy_bytes(
                    self._outputs[number], f"%in{allocation.copied_input}", allocation.size_bytes
                )

    def add_steps(self, steps: Iterable[Step]) -> None:
        """Write the instructions of steps."""
        from cyxla._runtime import CopyStep, KernelStep, WhileStep

        for step in steps:
            if isinstance(step, KernelStep):
                addresses = ", ".join(f"ptr {self._address(slice_)}" for slice_ in step.slices)
                self._add(f"call void @{_shim(step.kernel, len(step.slices))}({addresses})")
            elif isinstance(step, CopyStep):
                self._add_copy(step)
            elif isinstance(step, WhileStep):
                self._add_while(step)
            else:
                self._add_conditional(step)

    def _add_copy(self, step: CopyStep) -> None:
        source, destination = self._address(step.source), self._address(step.destination)
        if not step.dimensions:
            self._copy_bytes(destination, source, step.source.size_bytes)
            return
        loops: list[tuple[str, str, int]] = []
        for size, source_stride, destination_stride in step.dimensions:
            label, counter = self._begin_loop()
            source = self._offset(source, counter, source_stride)
            destination = self._offset(destination, counter, destination_stride)
            loops.append((label, counter, size))
        type_ = f"i{8 * step.element_bytes}"
        value = self._new()
        self._add(f"{value} = load {type_}, ptr {source}, align 1")
        self._add(f"store {type_} {value}, ptr {destination}, align 1")
        for label, counter, size in reversed(loops):
            self._end_loop(label, counter, size)

    def _add_while(self, step: WhileStep) -> None:
        if step.trip_count is not None:
            if step.trip_count > 0:
                label, counter = self._begin_loop()
                self.add_steps(step.body)
                self._end_loop(label, counter, step.trip_count)
            return
        start, body, end = (self._label(word) for word in ("while", "body", "end"))
        self._add(f"br label %{start}")
        self._begin_block(start)
        self.add_steps(step.condition)
        self._branch_on(self._load("i8", step.result), body, end)
        self._begin_block(body)
        self.add_steps(step.body)
        self._add(f"br label %{start}")
        self._begin_block(end)

    def _add_conditional(self, step: ConditionalStep) -> None:
        labels = [self._label("branch") for _ in step.branches]
        end = self._label("end")
        if step.is_predicate:
            self._branch_on(self._load("i8", step.branch_index), *labels)
        else:
            # An index out of range selects the last branch.
            cases = " ".join(f"i32 {i}, label %{label}" for i, label in enumerate(labels[:-1]))
            index = self._load("i32", step.branch_index)
            self._add(f"switch i32 {index}, label %{labels[-1]} [{cases}]")
        for label, branch in zip(labels, step.branches, strict=True):
            self._begin_block(label)
            self.add_steps(branch)
            self._add(f"br label %{end}")
        self._begin_block(end)

    def _begin_loop(self) -> tuple[str, str]:
        """Begin a block that is repeated; return its label and its counter, from 0."""
        label, before, counter = self._label("loop"), self._block, self._new()
        self._add(f"br label %{label}")
        self._begin_block(label)
        self._add(f"{counter} = phi i64 [0, %{before}], [{counter}.next, %{label}.end]")
        return label, counter

    def _end_loop(self, label: str, counter: str, size: int) -> None:
        after, is_done = self._label("end"), self._new()
        self._add(f"br label %{label}.end")
        self._begin_block(f"{label}.end")
        self._add(f"{counter}.next = add i64 {counter}, 1")
        self._add(f"{is_done} = icmp eq i64 {counter}.next, {size}")
        self._add(f"br i1 {is_done}, label %{after}, label %{label}")
        self._begin_block(after)

    def _branch_on(self, byte: str, if_true: str, if_false: str) -> None:
        is_true = self._new()
        self._add(f"{is_true} = icmp ne i8 {byte}, 0")
        self._add(f"br i1 {is_true}, label %{if_true}, label %{if_false}")

    def _load(self, type_: str, slice_: Slice) -> str:
        address, value = self._address(slice_), self._new()
        self._add(f"{value} = load {type_}, ptr {address}, align 1")
        return value

    def _address(self, slice_: Slice) -> str:
        """Return a pointer to a slice."""
        if (place := self.memory.stack.get(slice_)) is not None:
            return place
        allocation = self._plan.allocations[slice_.allocation]
        offset = slice_.offset
        if _is_temporary(slice_, self._plan.allocations):
            base, offset = "%workspace", offset + self.memory.workspace[slice_.allocation]
        elif allocation.kind == "input":
            base = f"%in{allocation.number}"
        elif allocation.kind == "output":
            base = self._outputs[allocation.number]
        else:
            base = f"@constant.{slice_.allocation}"
        if offset == 0:
            return base
        address = self._new()
        self._add(f"{address} = getelementptr i8, ptr {base}, i64 {offset}")
        return address

    def _offset(self, base: str, counter: str, stride_bytes: int) -> str:
        distance, address = self._new(), self._new()
        self._add(f"{distance} = mul i64 {counter}, {stride_bytes}")
        self._add(f"{address} = getelementptr i8, ptr {base}, i64 {distance}")
        return address

    def _copy_bytes(self, destination: str, source: str, size_bytes: int) -> None:
        self._add(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {destination}, ptr {source}, i64 {size_bytes},"
            " i1 false)"
        )

    def _alloca(self, name: str, size_bytes: int) -> None:
        self._add(f"{name} = alloca [{max(size_bytes, 1)} x i8], align {_ALIGNMENT}")

    def _new(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _label(self, word: str) -> str:
        self._count += 1
        return f"{word}{self._count}"

    def _begin_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._block = label

    def _add(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")
