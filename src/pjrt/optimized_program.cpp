// SPDX-License-Identifier: Apache-2.0
#include "pjrt/optimized_program.h"

#include <string_view>
#include <utility>

#include "base/wire.h"
#include "pjrt/element_type.h"
#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {
namespace {

// Returns the HloModuleProto. In "hlo_with_config" it is field 1 of the message around it.
std::optional<std::string_view> find_module(std::string_view format, std::string_view code) {
  if (format == "hlo") {
    return code;
  }
  std::optional<std::string_view> module;
  if (format != "hlo_with_config" ||
      !wire::for_each_bytes_field(code, 1, [&](std::string_view bytes) { module = bytes; })) {
    return std::nullopt;
  }
  return module;
}

// Reads a ShapeProto: element type (2) and dimensions (3, packed). Returns false for tuples and
// tokens.
bool read_shape(std::string_view bytes, ValueType& type) {
  constexpr std::uint64_t kTuple = 13;
  constexpr std::uint64_t kToken = 17;
  std::uint64_t primitive_type = 0;
  wire::Reader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->field == 2 && field->type == wire::Type::kVarint) {
      primitive_type = field->number;
    } else if (field->field == 3 && field->type == wire::Type::kVarint) {
      type.dimensions.push_back(static_cast<std::int64_t>(field->number));
    } else if (field->field == 3 && field->type == wire::Type::kBytes) {
      std::string_view packed = field->bytes;
      while (!packed.empty()) {
        const std::optional<std::uint64_t> dimension = wire::take_varint(packed);
        if (!dimension) {
          return false;
        }
        type.dimensions.push_back(static_cast<std::int64_t>(*dimension));
      }
    }
  }
  type.element_type = element_type_of_xla(primitive_type);
  return !reader.failed() && primitive_type != kTuple && primitive_type != kToken;
}

}  // namespace

std::optional<std::int64_t> OptimizedProgram::num_instructions() const {
  const std::optional<std::string_view> module = find_module(format, code);
  if (!module) {
    return std::nullopt;
  }
  // A module's computations (3) hold their instructions in field 2.
  std::int64_t count = 0;
  bool readable = true;
  readable &= wire::for_each_bytes_field(*module, 3, [&](std::string_view computation) {
    readable &= wire::for_each_bytes_field(computation, 2, [&](std::string_view) { ++count; });
  });
  return readable && count > 0 ? std::optional(count) : std::nullopt;
}

std::optional<std::vector<ValueType>> OptimizedProgram::input_types() const {
  const std::optional<std::string_view> module = find_module(format, code);
  if (!module) {
    return std::nullopt;
  }
  // The module's ProgramShapeProto (4) holds the shapes of its parameters in field 1.
  std::optional<std::string_view> program_shape;
  bool readable = wire::for_each_bytes_field(
      *module, 4, [&](std::string_view bytes) { program_shape = bytes; });
  if (!readable || !program_shape) {
    return std::nullopt;
  }
  std::vector<ValueType> types;
  readable &= wire::for_each_bytes_field(*program_shape, 1, [&](std::string_view shape) {
    ValueType type;
    readable &= read_shape(shape, type);
    types.push_back(std::move(type));
  });
  return readable ? std::optional(std::move(types)) : std::nullopt;
}

}  // namespace cyxla::pjrt
