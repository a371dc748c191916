// SPDX-License-Identifier: Apache-2.0
#include "input.h"

#include <vector>

#include "base/wire.h"

namespace cyxla::fuzz {
namespace {

bool read_sizes(const wire::Field& field, std::vector<std::size_t>& sizes) {
  for (std::string_view rest = field.bytes; !rest.empty();) {
    const auto size_bytes = wire::take_varint(rest);
    if (!size_bytes || sizes.size() == kMaxArrays) {
      return false;
    }
    sizes.push_back(*size_bytes);
  }
  return field.type == wire::Type::kBytes;
}

}  // namespace

std::optional<Input> read_input(std::string_view bytes) {
  Input input;
  wire::Reader reader(bytes);
  while (const auto field = reader.next()) {
    bool is_read = true;
    if (field->field == 1) {
      is_read = read_sizes(*field, input.expected.input_bytes);
    } else if (field->field == 2) {
      is_read = read_sizes(*field, input.expected.output_bytes);
    } else if (field->field == kExecutableField) {
      input.serialized = field->bytes;
    }
    if (!is_read) {
      return std::nullopt;
    }
  }
  return reader.failed() ? std::nullopt : std::optional<Input>(input);
}

}  // namespace cyxla::fuzz
