// SPDX-License-Identifier: Apache-2.0
#include "executable.h"

#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "error.h"
#include "settings.h"

// The result of PJRT_Executable_Serialize; the caller passes it to its deleter.
struct PJRT_SerializedExecutable : fake_plugin::Object<PJRT_SerializedExecutable> {
  std::string bytes;
};

namespace fake_plugin {
namespace {

PJRT_Error* not_an_executable() {
  return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not an executable");
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>(0x80 | (value & 0x7f));
  }
  return bytes + static_cast<char>(value);
}

// Fields in protobuf's wire format.
std::string varint_field(int number, std::uint64_t value) {
  return std::string(1, static_cast<char>(number << 3)) + varint(value);
}

std::string bytes_field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + varint(bytes.size()) + bytes;
}

// Has the structure of XLA:CPU's serialization: field 1 holds objects (8) with code (1), among
// other fields. As with the real plugin, a deserialized program has no objects.
std::string objects(bool is_deserialized) {
  switch (is_deserialized ? 1 : setting(FAKE_PLUGIN_SERIALIZED)) {
    case 1:
      return bytes_field(1, bytes_field(2, "module"));
    case 2:
      return bytes_field(1, "\x42\x7f cut off");
    default: {
      const std::string first = bytes_field(2, "name") + bytes_field(1, std::string(100, 'a'));
      const std::string second = bytes_field(1, std::string(28, 'b'));
      return bytes_field(
                 1, bytes_field(2, "module") + bytes_field(8, first) + bytes_field(8, second)) +
             bytes_field(3, "options");
    }
  }
}

// The code for deserializing is at the end, after this mark.
constexpr std::string_view kCodeMark = "code of the fake plugin\n";

std::string serialized_bytes(const PJRT_Executable& executable) {
  return objects(executable.is_deserialized) +
         bytes_field(4, std::string(kCodeMark) + executable.code);
}

// Maps to XLA's PrimitiveType, which agrees with PJRT's only in the first types.
std::uint64_t primitive_type(PJRT_Buffer_Type type) {
  const std::map<PJRT_Buffer_Type, std::uint64_t> others = {
      {PJRT_Buffer_Type_BF16, 16},       {PJRT_Buffer_Type_C64, 15},
      {PJRT_Buffer_Type_C128, 18},       {PJRT_Buffer_Type_F8E5M2, 19},
      {PJRT_Buffer_Type_F8E4M3FN, 20},   {PJRT_Buffer_Type_S4, 21},
      {PJRT_Buffer_Type_U4, 22},         {PJRT_Buffer_Type_F8E4M3B11FNUZ, 23},
      {PJRT_Buffer_Type_F8E5M2FNUZ, 24}, {PJRT_Buffer_Type_F8E4M3FNUZ, 25},
      {PJRT_Buffer_Type_S2, 26},         {PJRT_Buffer_Type_U2, 27},
      {PJRT_Buffer_Type_F8E4M3, 28},     {PJRT_Buffer_Type_F8E3M4, 29},
      {PJRT_Buffer_Type_F4E2M1FN, 32},   {PJRT_Buffer_Type_F8E8M0FNU, 33}};
  const auto found = others.find(type);
  return found == others.end() ? static_cast<std::uint64_t>(type) : found->second;
}

// Returns the field of an HLO module with its parameters' shapes; dimensions are packed or not.
std::string program_shape(const Program& program) {
  std::string parameters;
  for (const ArrayType& input : program.inputs) {
    std::string shape = varint_field(2, primitive_type(input.element_type));
    std::string packed;
    for (const std::int64_t dimension : input.dimensions) {
      if (program.inputs.size() % 2 == 0) {
        packed += varint(static_cast<std::uint64_t>(dimension));
      } else {
        shape += varint_field(3, static_cast<std::uint64_t>(dimension));
      }
    }
    parameters += bytes_field(1, shape + (packed.empty() ? "" : bytes_field(3, packed)));
  }
  return bytes_field(4, parameters);
}

// Returns an HloModuleProto with two computations (3) of two and three instructions (2), and the
// program's parameters.
std::string optimized_bytes(const Program& program) {
  const auto instructions = [](int count) {
    std::string text = bytes_field(1, "name");
    for (int i = 0; i < count; ++i) {
      text += bytes_field(2, bytes_field(1, "instruction"));
    }
    return bytes_field(3, text);
  };
  const std::string module =
      bytes_field(1, "module") + instructions(2) + instructions(3) + program_shape(program);
  switch (setting(FAKE_PLUGIN_OPTIMIZED)) {
    case 1:
      return module;
    case 2:
      return bytes_field(1, module) + "\x1a\x7f cut off";
    case 4:
      return bytes_field(1, bytes_field(1, "module"));
    default:
      return bytes_field(1, module) + bytes_field(2, "configuration");
  }
}

std::string_view optimized_format() {
  constexpr std::string_view kFormats[] = {"hlo_with_config", "hlo", "hlo_with_config", "mlir",
                                           "hlo_with_config"};
  return kFormats[setting(FAKE_PLUGIN_OPTIMIZED)];
}

void delete_serialized(PJRT_SerializedExecutable* serialized) {
  if (PJRT_SerializedExecutable::check(serialized, "serialized_executable_deleter")) {
    serialized->bytes.clear();
    serialized->retire();
  }
}

}  // namespace

namespace implementation {

PJRT_Error* executable_destroy(PJRT_Executable_Destroy_Args& args) {
  if (args.executable != nullptr &&
      PJRT_Executable::check(args.executable, "PJRT_Executable_Destroy")) {
    args.executable->program = {};
    args.executable->output_types.clear();
    args.executable->output_dimensions.clear();
    args.executable->output_ranks.clear();
    args.executable->retire();
  }
  return nullptr;
}

PJRT_Error* executable_num_outputs(PJRT_Executable_NumOutputs_Args& args) {
  if (!PJRT_Executable::check(args.executable, "PJRT_Executable_NumOutputs")) {
    return not_an_executable();
  }
  args.num_outputs = args.executable->program.outputs.size();
  return nullptr;
}

PJRT_Error* executable_output_element_types(PJRT_Executable_OutputElementTypes_Args& args) {
  if (!PJRT_Executable::check(args.executable, "PJRT_Executable_OutputElementTypes")) {
    return not_an_executable();
  }
  auto& types = args.executable->output_types;
  types.clear();
  for (const Output& output : args.executable->program.outputs) {
    types.push_back(output.type.element_type);
  }
  if (types.empty()) {
    return make_error(PJRT_Error_Code_INTERNAL, "no outputs");  // as some plugins do
  }
  args.output_types = types.data();
  args.num_output_types = types.size() - (setting(FAKE_PLUGIN_CONTRADICTION) == 1 ? 1 : 0);
  return nullptr;
}

PJRT_Error* executable_output_dimensions(PJRT_Executable_OutputDimensions_Args& args) {
  if (!PJRT_Executable::check(args.executable, "PJRT_Executable_OutputDimensions")) {
    return not_an_executable();
  }
  auto& dimensions = args.executable->output_dimensions;
  auto& ranks = args.executable->output_ranks;
  dimensions.clear();
  ranks.clear();
  for (const Output& output : args.executable->program.outputs) {
    dimensions.insert(dimensions.end(), output.type.dimensions.begin(),
                      output.type.dimensions.end());
    ranks.push_back(output.type.dimensions.size());
  }
  if (ranks.empty()) {
    return make_error(PJRT_Error_Code_INTERNAL, "no outputs");
  }
  args.num_outputs = ranks.size() - (setting(FAKE_PLUGIN_CONTRADICTION) == 2 ? 1 : 0);
  args.dims = dimensions.data();
  args.dim_sizes = ranks.data();
  return nullptr;
}

PJRT_Error* executable_get_cost_analysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  if (!PJRT_Executable::check(args.executable, "PJRT_Executable_GetCostAnalysis")) {
    return not_an_executable();
  }
  PJRT_NamedValue& property = args.executable->property;
  property = {};
  property.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  property.name = setting(FAKE_PLUGIN_FLOPS) == 1 ? "bytes" : "flops";
  property.name_size = 5;
  if (setting(FAKE_PLUGIN_FLOPS) == 2) {
    property.type = PJRT_NamedValue_kString;
    property.string_value = "many";
    property.value_size = 4;
  } else {
    property.type = PJRT_NamedValue_kFloat;
    property.float_value = 42;
    property.value_size = 1;
  }
  args.properties = &property;
  args.num_properties = 1;
  return nullptr;
}

PJRT_Error* executable_get_compiled_memory_stats(
    PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  if (!PJRT_Executable::check(args.executable, "PJRT_Executable_GetCompiledMemoryStats")) {
    return not_an_executable();
  }
  const Program& program = args.executable->program;
  args.generated_code_size_in_bytes = setting(FAKE_PLUGIN_CODE_BYTES);
  args.argument_size_in_bytes = 0;
  for (const ArrayType& input : program.inputs) {
    args.argument_size_in_bytes += static_cast<std::int64_t>(input.size_bytes());
  }
  args.output_size_in_bytes = 0;
  for (const Output& output : program.outputs) {
    args.output_size_in_bytes += static_cast<std::int64_t>(output.type.size_bytes());
  }
  args.temp_size_in_bytes = 17;
  return nullptr;
}

PJRT_Error* executable_optimized_program(PJRT_Executable_OptimizedProgram_Args& args) {
  if (!PJRT_Executable::check(args.executable, "PJRT_Executable_OptimizedProgram")) {
    return not_an_executable();
  }
  const std::string bytes = optimized_bytes(args.executable->program);
  PJRT_Program& program = *args.program;
  program.format = optimized_format().data();
  program.format_size = optimized_format().size();
  if (program.code == nullptr) {
    program.code_size = bytes.size();
    return nullptr;
  }
  if (program.code_size < bytes.size()) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "the code does not fit");
  }
  std::memcpy(program.code, bytes.data(), bytes.size());
  return nullptr;
}

PJRT_Error* executable_serialize(PJRT_Executable_Serialize_Args& args) {
  if (!PJRT_Executable::check(args.executable, "PJRT_Executable_Serialize")) {
    return not_an_executable();
  }
  PJRT_SerializedExecutable* serialized =
      PJRT_SerializedExecutable::make(FAKE_PLUGIN_SERIALIZED_EXECUTABLE);
  serialized->bytes = serialized_bytes(*args.executable);
  args.serialized_bytes = serialized->bytes.data();
  args.serialized_bytes_size = serialized->bytes.size();
  args.serialized_executable = serialized;
  args.serialized_executable_deleter = delete_serialized;
  return nullptr;
}

PJRT_Error* executable_deserialize_and_load(PJRT_Executable_DeserializeAndLoad_Args& args) {
  if (!PJRT_Client::check(args.client, "PJRT_Executable_DeserializeAndLoad")) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a client");
  }
  const std::string_view bytes(args.serialized_executable, args.serialized_executable_size);
  const std::size_t mark = bytes.find(kCodeMark);
  if (mark == std::string_view::npos) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "these bytes are not a serialized executable");
  }
  return load(args.client, bytes.substr(mark + kCodeMark.size()), true, args.loaded_executable);
}

}  // namespace implementation
}  // namespace fake_plugin
