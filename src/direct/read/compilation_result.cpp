// SPDX-License-Identifier: Apache-2.0
#include "direct/read/compilation_result.h"

#include <cstdint>

#include "direct/read/tables.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

// Values of CompilationResultProto.ObjFileKind and SymbolProto.FunctionTypeId.
constexpr std::uint64_t kKernelObjects = 2;
constexpr std::uint64_t kKernelSymbol = 1;
constexpr std::uint64_t kComparatorSymbol = 2;

void read_symbol(std::string_view bytes, std::set<std::string_view>& kernels) {
  const Message<proto::kSymbol> symbol(bytes, "a symbol");
  const std::uint64_t type = symbol.number("function_type_id");
  if (type == kKernelSymbol) {
    kernels.insert(symbol.bytes("name"));
  } else if (type != kComparatorSymbol) {
    throw Refusal(Reason::kUnsupportedField,
                  "a compiled function is neither a kernel nor a comparator");
  }
}

void check_target(std::string_view bytes) {
  const Message<proto::kTargetMachineOptions> target(bytes, "the target machine");
  const std::string_view triple = target.bytes("triple");
  if (!triple.starts_with("x86_64-") || triple.find("-linux") == std::string_view::npos) {
    throw Refusal(Reason::kPlatform, "the kernels are not for x86-64 Linux");
  }
}

}  // namespace

CompilationResult read_compilation_result(std::string_view serialized) {
  const Message<proto::kExecutableAndOptions> executable(serialized, "the executable");
  const Message<proto::kCompilationResult> message(executable.bytes("serialized_executable"),
                                                   "the compilation result");
  if (message.has("target_machine_options")) {
    check_target(message.bytes("target_machine_options"));
  }
  const Message<proto::kHloModuleWithConfig> module(message.bytes("hlo_module"),
                                                    "the HLO module with its configuration");
  CompilationResult result{.module = module.bytes("hlo_module"),
                           .buffer_assignment = message.bytes("buffer_assignment"),
                           .steps = message.bytes("thunk_sequence")};
  message.for_each("compiled_symbols",
                   [&](std::string_view symbol) { read_symbol(symbol, result.kernels); });
  message.for_each("object_files", [&](std::string_view object) {
    const Message<proto::kObjFile> file(object, "an object file");
    result.objects.emplace_back(file.bytes("contents"));
  });
  if (message.number("obj_files_kind") != kKernelObjects) {
    throw Refusal(Reason::kUnsupportedField, "the object files hold no kernels; they are of kind " +
                                                 std::to_string(message.number("obj_files_kind")));
  }
  if (!message.has("target_machine_options")) {
    throw Refusal(Reason::kPlatform, "the executable does not name the target of its kernels");
  }
  return result;
}

}  // namespace cyxla::direct
