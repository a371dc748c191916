// SPDX-License-Identifier: Apache-2.0
#include "pjrt/named_value.h"

#include <cstring>
#include <optional>
#include <utility>

namespace cyxla::pjrt {
namespace {

struct Fill {
  PJRT_NamedValue& out;

  void operator()(bool value) const {
    out.type = PJRT_NamedValue_kBool;
    out.bool_value = value;
    out.value_size = 1;
  }
  void operator()(std::int64_t value) const {
    out.type = PJRT_NamedValue_kInt64;
    out.int64_value = value;
    out.value_size = 1;
  }
  void operator()(float value) const {
    out.type = PJRT_NamedValue_kFloat;
    out.float_value = value;
    out.value_size = 1;
  }
  void operator()(const std::string& value) const {
    out.type = PJRT_NamedValue_kString;
    out.string_value = value.c_str();
    out.value_size = value.size();
  }
  void operator()(const std::vector<std::int64_t>& value) const {
    out.type = PJRT_NamedValue_kInt64List;
    out.int64_array_value = value.data();
    out.value_size = value.size();
  }
};

// Rejects null arrays and sizes so large that the plugin's struct must be corrupt.
bool is_readable(const void* pointer, std::size_t size) noexcept {
  constexpr std::size_t kMaxSize = std::size_t{1} << 24;
  return size == 0 || (pointer != nullptr && size <= kMaxSize);
}

// Returns std::nullopt for a type unknown to the header, and for an unreadable value.
std::optional<NamedValue> value_of(const PJRT_NamedValue& value) {
  switch (number_of(value.type)) {
    case PJRT_NamedValue_kString:
      if (!is_readable(value.string_value, value.value_size)) {
        return std::nullopt;
      }
      return std::string(value.string_value, value.value_size);
    case PJRT_NamedValue_kInt64:
      return value.int64_value;
    case PJRT_NamedValue_kInt64List:
      if (!is_readable(value.int64_array_value, value.value_size)) {
        return std::nullopt;
      }
      return std::vector<std::int64_t>(value.int64_array_value,
                                       value.int64_array_value + value.value_size);
    case PJRT_NamedValue_kFloat:
      return value.float_value;
    case PJRT_NamedValue_kBool: {
      unsigned char byte = 0;  // another language's bool may have a byte that is invalid in C++
      std::memcpy(&byte, &value.bool_value, sizeof byte);
      return byte != 0;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<PJRT_NamedValue> to_pjrt(const NamedValues& options) {
  std::vector<PJRT_NamedValue> values;
  values.reserve(options.size());
  for (const auto& [name, value] : options) {
    PJRT_NamedValue out = {};
    out.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    out.name = name.c_str();
    out.name_size = name.size();
    std::visit(Fill{out}, value);
    values.push_back(out);
  }
  return values;
}

NamedValues from_pjrt(const PJRT_NamedValue* values, std::size_t num_values) {
  NamedValues result;
  if (!is_readable(values, num_values)) {
    return result;
  }
  for (std::size_t i = 0; i < num_values; ++i) {
    const PJRT_NamedValue& value = values[i];
    if (!is_readable(value.name, value.name_size)) {
      continue;
    }
    if (std::optional<NamedValue> read = value_of(value)) {
      result.insert_or_assign(std::string(value.name, value.name_size), std::move(*read));
    }
  }
  return result;
}

}  // namespace cyxla::pjrt
