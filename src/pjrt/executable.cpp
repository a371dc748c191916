// SPDX-License-Identifier: Apache-2.0
#include "pjrt/executable.h"

#include <string_view>
#include <utility>

#include "base/scope_guard.h"
#include "base/wire.h"
#include "pjrt/named_value.h"

namespace cyxla::pjrt {
namespace {

// Plugins report a size that they do not know as 0.
std::optional<std::int64_t> known(std::int64_t size_bytes) {
  return size_bytes > 0 ? std::optional(size_bytes) : std::nullopt;
}

// Returns the total size of the object files in an executable serialized by XLA:CPU. Field 1 of
// ExecutableAndOptionsProto is a CompilationResultProto, its objects are field 8, and the code of
// each object is field 1.
std::optional<std::int64_t> object_bytes(std::string_view serialized) {
  std::int64_t total = 0;
  bool readable = true;
  readable &= wire::for_each_bytes_field(serialized, 1, [&](std::string_view result) {
    readable &= wire::for_each_bytes_field(result, 8, [&](std::string_view object) {
      readable &= wire::for_each_bytes_field(object, 1, [&](std::string_view code) {
        total += static_cast<std::int64_t>(code.size());
      });
    });
  });
  return readable ? known(total) : std::nullopt;
}

}  // namespace

Handle<PJRT_Executable> LoadedExecutable::executable() const {
  CYXLA_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable, args);
  args.loaded_executable = executable_.get();
  checked_call(*api_, CYXLA_SLOT(PJRT_LoadedExecutable_GetExecutable), args, ErrorCode::kCompile);
  check_given(CYXLA_SLOT(PJRT_LoadedExecutable_GetExecutable), args.executable, "executable",
              ErrorCode::kCompile);
  return {*api_, args.executable};
}

std::vector<ValueType> LoadedExecutable::output_types() const {
  const Handle<PJRT_Executable> executable = this->executable();

  CYXLA_PJRT_ARGS(PJRT_Executable_NumOutputs, count);
  count.executable = executable.get();
  checked_call(*api_, CYXLA_SLOT(PJRT_Executable_NumOutputs), count, ErrorCode::kCompile);
  std::vector<ValueType> outputs(count.num_outputs);
  if (outputs.empty()) {
    return outputs;  // some plugins fail the two calls below when a program has no outputs
  }

  CYXLA_PJRT_ARGS(PJRT_Executable_OutputElementTypes, types);
  types.executable = executable.get();
  checked_call(*api_, CYXLA_SLOT(PJRT_Executable_OutputElementTypes), types, ErrorCode::kCompile);
  CYXLA_PJRT_ARGS(PJRT_Executable_OutputDimensions, dimensions);
  dimensions.executable = executable.get();
  checked_call(*api_, CYXLA_SLOT(PJRT_Executable_OutputDimensions), dimensions,
               ErrorCode::kCompile);
  check_given(CYXLA_SLOT(PJRT_Executable_OutputElementTypes), types.output_types, "types",
              ErrorCode::kCompile);
  check_given(CYXLA_SLOT(PJRT_Executable_OutputDimensions), dimensions.dim_sizes, "ranks",
              ErrorCode::kCompile);
  if (types.num_output_types != outputs.size() || dimensions.num_outputs != outputs.size()) {
    throw Error(ErrorCode::kCompile, "PJRT_Executable_OutputElementTypes",
                "the plugin reports " + counted(outputs.size(), "output") + " but " +
                    counted(types.num_output_types, "element type") + " and " +
                    counted(dimensions.num_outputs, "shape") + "; use another plugin");
  }
  const std::int64_t* next = dimensions.dims;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].element_type = static_cast<std::int32_t>(number_of(types.output_types[i]));
    if (dimensions.dim_sizes[i] > 0) {
      check_given(CYXLA_SLOT(PJRT_Executable_OutputDimensions), next, "dimensions",
                  ErrorCode::kCompile);
    }
    outputs[i].dimensions.assign(next, next + dimensions.dim_sizes[i]);
    next += dimensions.dim_sizes[i];
  }
  return outputs;
}

MemoryStatistics LoadedExecutable::memory_statistics(const std::string& serialized) const {
  MemoryStatistics statistics;
  const Handle<PJRT_Executable> executable = this->executable();
  if (api_->has(CYXLA_SLOT(PJRT_Executable_GetCompiledMemoryStats))) {
    CYXLA_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats, args);
    args.executable = executable.get();
    if (api_->call(CYXLA_SLOT(PJRT_Executable_GetCompiledMemoryStats), args).ok()) {
      statistics.code_bytes = known(args.generated_code_size_in_bytes);
      statistics.argument_bytes = args.argument_size_in_bytes;
      statistics.output_bytes = args.output_size_in_bytes;
      statistics.temporary_bytes = args.temp_size_in_bytes;
    }
  }
  if (!statistics.code_bytes) {
    statistics.code_bytes = object_bytes(serialized.empty() ? serialize() : serialized);
  }
  return statistics;
}

std::string LoadedExecutable::serialize() const {
  if (!api_->has(CYXLA_SLOT(PJRT_Executable_Serialize))) {
    return {};
  }
  const Handle<PJRT_Executable> executable = this->executable();
  CYXLA_PJRT_ARGS(PJRT_Executable_Serialize, args);
  args.executable = executable.get();
  if (!api_->call(CYXLA_SLOT(PJRT_Executable_Serialize), args).ok()) {
    return {};
  }
  const ScopeGuard deleter([&] {
    if (args.serialized_executable_deleter != nullptr) {
      args.serialized_executable_deleter(args.serialized_executable);
    }
  });
  if (args.serialized_bytes == nullptr) {
    return {};
  }
  return {args.serialized_bytes, args.serialized_bytes_size};
}

std::optional<OptimizedProgram> LoadedExecutable::optimized_program() const {
  if (!api_->has(CYXLA_SLOT(PJRT_Executable_OptimizedProgram))) {
    return std::nullopt;
  }
  const Handle<PJRT_Executable> executable = this->executable();
  PJRT_Program program = {};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  CYXLA_PJRT_ARGS(PJRT_Executable_OptimizedProgram, args);
  args.executable = executable.get();
  args.program = &program;
  // The first call gives the size, the second the bytes.
  if (!api_->call(CYXLA_SLOT(PJRT_Executable_OptimizedProgram), args).ok()) {
    return std::nullopt;
  }
  std::string code(program.code_size, '\0');
  program.code = code.data();
  if (!api_->call(CYXLA_SLOT(PJRT_Executable_OptimizedProgram), args).ok() ||
      program.format == nullptr) {
    return std::nullopt;
  }
  return OptimizedProgram{{program.format, program.format_size}, std::move(code)};
}

std::optional<double> LoadedExecutable::flops() const {
  if (!api_->has(CYXLA_SLOT(PJRT_Executable_GetCostAnalysis))) {
    return std::nullopt;
  }
  const Handle<PJRT_Executable> executable = this->executable();
  CYXLA_PJRT_ARGS(PJRT_Executable_GetCostAnalysis, args);
  args.executable = executable.get();
  if (!api_->call(CYXLA_SLOT(PJRT_Executable_GetCostAnalysis), args).ok()) {
    return std::nullopt;
  }
  const NamedValues properties = from_pjrt(args.properties, args.num_properties);
  const auto found = properties.find("flops");
  if (found == properties.end() || !std::holds_alternative<float>(found->second)) {
    return std::nullopt;
  }
  return static_cast<double>(std::get<float>(found->second));
}

}  // namespace cyxla::pjrt
