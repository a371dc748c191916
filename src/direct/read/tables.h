// SPDX-License-Identifier: Apache-2.0
// The protobuf messages of a serialized executable, by XLA's .proto files. Names and numbers are
// those of jaxlib 0.11.2's XLA, which lammps-jax-pjrt-cpu 0.11.2 carries in its descriptors. A
// field without a row is unknown here: no plugin has been seen to write it for a program that cyxla
// calls directly. tests/python/test_direct_tables.py compares the rows with the installed plugins.
#pragma once

#include "direct/read/message.h"

namespace cyxla::direct::proto {

using enum Kind;
using enum Rule;

// xla/pjrt/proto/compile_options.proto: ExecutableAndOptionsProto
inline constexpr Row kExecutableAndOptions[] = {
    {1, "serialized_executable", kBytes},
    {2, "compile_options", kBytes, kIgnore},
    {3, "pjrt_client_name", kBytes, kIgnore},
};

// xla/xla.proto: HloModuleProtoWithConfig
inline constexpr Row kHloModuleWithConfig[] = {
    {1, "hlo_module", kBytes},
    {2, "config", kBytes, kIgnore},  // the kernels have what the compiler made of it
};

// xla/service/cpu/executable.proto: CompilationResultProto
inline constexpr Row kCompilationResult[] = {
    {1, "hlo_module", kBytes},
    {2, "buffer_assignment", kBytes},
    {5, "obj_files_kind", kNumber},
    {6, "thunk_sequence", kBytes},
    {7, "compiled_symbols", kRepeatedBytes},
    {8, "object_files", kRepeatedBytes},
    {9, "target_machine_options", kBytes},
    {10, "data_layout", kBytes, kIgnore},  // it follows from the target
};

// xla/service/cpu/executable.proto: SymbolProto
inline constexpr Row kSymbol[] = {
    {1, "function_type_id", kNumber},
    {2, "name", kBytes},
};

// xla/service/cpu/executable.proto: ObjFileProto
inline constexpr Row kObjFile[] = {
    {1, "contents", kBytes},
    {2, "name", kBytes, kIgnore},
};

// xla/service/cpu/executable.proto: TargetMachineOptionsProto
inline constexpr Row kTargetMachineOptions[] = {
    {1, "triple", kBytes},
    {2, "cpu", kBytes, kIgnore},  // the plugin compiled for this machine
    {3, "features", kBytes, kIgnore},
};

// xla/backends/cpu/runtime/thunk.proto: ThunkSequenceProto
inline constexpr Row kThunkSequence[] = {
    {1, "thunks", kRepeatedBytes},
    {2, "thunk_resources", kRepeatedBytes, kRefuse},  // they order steps that only the plugin runs
};

// xla/backends/cpu/runtime/thunk.proto: ThunkProto. Exactly one field from 3 on is set.
inline constexpr Row kThunk[] = {
    {1, "kind", kBytes},
    {2, "info", kBytes},
    {3, "call_thunk", kBytes},
    {4, "conditional_thunk", kBytes},
    {5, "sort_thunk", kBytes},
    {6, "xnn_fusion_thunk", kBytes},
    {7, "dot_thunk", kBytes},
    {8, "rng_get_and_update_state_thunk", kBytes},
    {9, "top_k_thunk", kBytes},
    {10, "while_thunk", kBytes},
    {11, "kernel_thunk", kBytes},
    {12, "copy_thunk", kBytes},
    {13, "fft_thunk", kBytes},
    {14, "infeed_thunk", kBytes},
    {15, "outfeed_thunk", kBytes},
    {16, "custom_call_thunk", kBytes},
    {17, "convolution_thunk", kBytes},
    {18, "collective_thunk", kBytes},
    {19, "partition_id_thunk", kBytes},
    {20, "replica_id_thunk", kBytes},
    {21, "ynn_fusion_thunk", kBytes},
    {22, "rng_seed_thunk", kBytes},
};

// xla/backends/cpu/runtime/thunk.proto: InfoProto
inline constexpr Row kInfo[] = {
    {1, "op_name", kBytes},
};

// xla/backends/cpu/runtime/thunk.proto: CallThunkProto
inline constexpr Row kCallThunk[] = {
    {1, "called_sequence", kBytes},
};

// xla/backends/cpu/runtime/thunk.proto: ConditionalThunkProto
inline constexpr Row kConditionalThunk[] = {
    {1, "branch_sequences", kRepeatedBytes},
    {2, "branch_index_buffer", kBytes},
};

// xla/backends/cpu/runtime/thunk.proto: WhileThunkProto
inline constexpr Row kWhileThunk[] = {
    {1, "cond_sequence", kBytes},
    {2, "body_sequence", kBytes},
    {3, "trip_count", kBytes},
    {4, "cond_buffer", kBytes},
};

// xla/backends/cpu/runtime/thunk.proto: KernelThunkProto
inline constexpr Row kKernelThunk[] = {
    {1, "kernel_name", kBytes},
    {2, "num_workgroups", kBytes},
    {3, "invariant_arguments", kNumbers, kIgnore},  // a promise to the compiler
    {4, "min_alignment", kBytes},
    {5, "arguments_buffers", kRepeatedBytes},
    {6, "results_buffers", kRepeatedBytes},
};

// xla/backends/cpu/runtime/thunk.proto: KernelThunkProto.NumWorkGroups
inline constexpr Row kNumWorkGroups[] = {
    {1, "x", kNumber},
    {2, "y", kNumber},
    {3, "z", kNumber},
};

// xla/backends/cpu/runtime/thunk.proto: CopyThunkProto
inline constexpr Row kCopyThunk[] = {
    {1, "src_buffer_shape", kBytes},
    {2, "dst_buffer_shape", kBytes},
};

// xla/backends/cpu/runtime/thunk.proto: Int64Optional
inline constexpr Row kInt64Optional[] = {
    {1, "value", kNumber},
    {2, "contains_value", kFlag},
};

// xla/backends/cpu/runtime/thunk.proto: ShapeBufferAllocationSliceProto
inline constexpr Row kShapeBufferAllocationSlice[] = {
    {1, "shape", kBytes},
    {2, "slice", kBytes},
};

// xla/service/shaped_slice.proto: ShapedSliceProto
inline constexpr Row kShapedSlice[] = {
    {1, "slice", kBytes},
    {2, "shape", kBytes},
};

// xla/service/buffer_assignment.proto: BufferAllocationSliceProto
inline constexpr Row kBufferAllocationSlice[] = {
    {1, "offset", kNumber},
    {2, "size", kNumber},
    {3, "buffer_allocation_index", kNumber},
    {4, "element_type", kNumber},
};

// xla/service/hlo.proto: BufferAssignmentProto
inline constexpr Row kBufferAssignment[] = {
    {1, "logical_buffers", kRepeatedBytes},
    {2, "buffer_aliases", kRepeatedBytes},
    {3, "buffer_allocations", kRepeatedBytes},
    {4, "heap_simulator_traces", kRepeatedBytes, kIgnore},
    {5, "peak_buffers", kRepeatedBytes, kIgnore},
};

// xla/service/hlo.proto: LogicalBufferProto
inline constexpr Row kLogicalBuffer[] = {
    {1, "id", kNumber},
    {2, "size", kNumber},
    {3, "defined_at", kBytes},
    {4, "color", kNumber, kUnset},  // a memory space of its own
};

// xla/service/hlo.proto: LogicalBufferProto.Location
inline constexpr Row kLocation[] = {
    {3, "shape_index", kNumbers},
    {4, "instruction_id", kNumber},
};

// xla/service/hlo.proto: BufferAssignmentProto.BufferAlias
inline constexpr Row kBufferAlias[] = {
    {1, "source_buffer_id", kNumber},
    {2, "location", kBytes},
};

// xla/service/hlo.proto: BufferAllocationProto
inline constexpr Row kBufferAllocation[] = {
    {1, "index", kNumber},
    {2, "size", kNumber},
    {3, "is_thread_local", kFlag},
    {5, "is_entry_computation_parameter", kFlag},
    {6, "parameter_number", kNumber},
    {7, "maybe_live_out", kFlag},
    {8, "color", kNumber, kUnset},  // a memory space of its own
    {9, "assigned", kRepeatedBytes},
    {10, "parameter_shape_index", kNumbers, kRefuse},  // an input is a tuple
    {11, "is_tuple", kFlag},
    {12, "is_constant", kFlag},
    {13, "is_parameter_aliased_with_output", kFlag},
};

// xla/service/hlo.proto: BufferAllocationProto.Assigned
inline constexpr Row kAssigned[] = {
    {1, "logical_buffer_id", kNumber},
    {2, "offset", kNumber},
    {3, "size", kNumber},
    {4, "element_type", kNumber, kIgnore},
};

// xla/service/hlo.proto: HloModuleProto
inline constexpr Row kHloModule[] = {
    {1, "name", kBytes, kIgnore},
    {2, "entry_computation_name", kBytes, kIgnore},
    {3, "computations", kRepeatedBytes},
    {4, "host_program_shape", kBytes},
    {5, "id", kNumber, kIgnore},
    {6, "entry_computation_id", kNumber},
    {7, "schedule", kBytes, kIgnore},            // the step list has it
    {8, "input_output_alias", kBytes, kIgnore},  // the buffer assignment has it
    {15, "device_assignment", kBytes, kIgnore},  // one device
    {17, "stack_frame_index", kBytes, kIgnore},
    {18, "buffer_donor", kBytes, kIgnore},
    {19, "frontend_attributes", kBytes, kIgnore},
};

// xla/service/hlo.proto: HloComputationProto
inline constexpr Row kHloComputation[] = {
    {1, "name", kBytes, kIgnore},
    {2, "instructions", kRepeatedBytes},
    {4, "program_shape", kBytes, kIgnore},  // the instructions have it
    {5, "id", kNumber},
    {6, "root_id", kNumber},
    {7, "is_fusion_computation", kFlag, kIgnore},
    {8, "execution_thread", kBytes, kIgnore},
};

// xla/service/hlo.proto: HloInstructionProto. The kernels hold what an instruction computes, and
// the step list the order, so most fields change nothing.
inline constexpr Row kHloInstruction[] = {
    {1, "name", kBytes, kIgnore},
    {2, "opcode", kBytes},
    {3, "shape", kBytes},
    {7, "metadata", kBytes, kIgnore},
    {8, "literal", kBytes},
    {9, "parameter_number", kNumber},
    {11, "fusion_kind", kBytes, kIgnore},
    {13, "tuple_index", kNumber},
    {14, "dimensions", kNumbers, kIgnore},
    {15, "window", kBytes},
    {16, "convolution_dimension_numbers", kBytes, kIgnore},
    {17, "slice_dimensions", kRepeatedBytes, kIgnore},
    {18, "exponent_bits", kNumber, kIgnore},
    {19, "mantissa_bits", kNumber, kIgnore},
    {20, "dynamic_slice_sizes", kNumbers, kIgnore},
    {21, "padding_config", kBytes, kIgnore},
    {23, "distribution", kNumber, kIgnore},
    {28, "custom_call_target", kBytes, kIgnore},
    {30, "dot_dimension_numbers", kBytes},
    {31, "fft_type", kNumber, kIgnore},
    {32, "fft_length", kNumbers, kIgnore},
    {33, "gather_dimension_numbers", kBytes, kIgnore},
    {34, "gather_slice_sizes", kNumbers, kIgnore},
    {35, "id", kNumber},
    {36, "operand_ids", kNumbers},
    {37, "control_predecessor_ids", kNumbers, kIgnore},
    {38, "called_computation_ids", kNumbers},
    {43, "backend_config", kBytes},
    {48, "scatter_dimension_numbers", kBytes, kIgnore},
    {50, "feature_group_count", kNumber, kIgnore},
    {51, "precision_config", kBytes, kIgnore},
    {56, "constrain_layout", kFlag, kIgnore},
    {57, "operand_shapes_with_layout", kRepeatedBytes, kIgnore},
    {58, "batch_group_count", kNumber, kIgnore},
    {59, "triangular_solve_options", kBytes, kIgnore},
    {60, "is_stable", kFlag, kIgnore},
    {62, "cholesky_options", kBytes, kIgnore},
    {63, "comparison_direction", kBytes, kIgnore},
    {66, "delta", kNumber, kIgnore},
    {67, "indices_are_sorted", kFlag, kIgnore},
    {68, "frontend_attributes", kBytes, kIgnore},
    {69, "unique_indices", kFlag, kIgnore},
    {70, "rng_algorithm", kNumber, kIgnore},
    {72, "comparison_type", kBytes, kIgnore},
    {74, "output_operand_aliasing", kRepeatedBytes, kIgnore},
    {75, "padding_type", kNumber, kIgnore},
    {77, "custom_call_api_version", kNumber, kIgnore},
    {81, "k", kNumber, kIgnore},
    {82, "statistics_viz", kBytes, kIgnore},
    {85, "largest", kFlag, kIgnore},
    {88, "original_value", kBytes, kIgnore},
    {91, "result_accuracy", kBytes, kIgnore},
    {98, "sparsity_config", kBytes, kUnset},        // of convolutions that no plugin
    {101, "block_scaling_config", kBytes, kUnset},  // has compiled so yet
    {102, "comparison_order", kBytes, kIgnore},
};

// xla/xla_data.proto: ProgramShapeProto
inline constexpr Row kProgramShape[] = {
    {1, "parameters", kRepeatedBytes},
    {2, "result", kBytes},
    {3, "parameter_names", kRepeatedBytes, kIgnore},
};

// xla/xla_data.proto: ShapeProto
inline constexpr Row kShape[] = {
    {2, "element_type", kNumber},
    {3, "dimensions", kNumbers},
    {4, "tuple_shapes", kRepeatedBytes},
    {5, "layout", kBytes},
    {6, "is_dynamic_dimension", kNumbers, kUnset},
};

// xla/xla_data.proto: LayoutProto
inline constexpr Row kLayout[] = {
    {1, "minor_to_major", kNumbers},
    {6, "tiles", kRepeatedBytes, kRefuse},
    {7, "element_size_in_bits", kNumber, kRefuse},
    {8, "memory_space", kNumber, kRefuse},
    {16, "tail_padding_alignment_in_elements", kNumber},
};

// xla/xla_data.proto: LiteralProto
inline constexpr Row kLiteral[] = {
    {1, "shape", kBytes},  {2, "preds", kNumbers}, {3, "u8s", kBytes},    {4, "s32s", kNumbers},
    {5, "s64s", kNumbers}, {6, "u32s", kNumbers},  {7, "u64s", kNumbers}, {8, "f32s", kBytes},
    {9, "f64s", kBytes},   {11, "f16s", kBytes},   {12, "c64s", kBytes},  {13, "bf16s", kBytes},
    {15, "s8s", kBytes},   {16, "u16s", kBytes},   {17, "s16s", kBytes},  {18, "c128s", kBytes},
};

// xla/xla_data.proto: Window
inline constexpr Row kWindow[] = {
    {1, "dimensions", kRepeatedBytes},
};

// xla/xla_data.proto: WindowDimension
inline constexpr Row kWindowDimension[] = {
    {1, "size", kNumber},
};

// xla/xla_data.proto: DotDimensionNumbers
inline constexpr Row kDotDimensionNumbers[] = {
    {1, "lhs_contracting_dimensions", kNumbers},
    {2, "rhs_contracting_dimensions", kNumbers},
    {3, "lhs_batch_dimensions", kNumbers},
    {4, "rhs_batch_dimensions", kNumbers},
};

}  // namespace cyxla::direct::proto
