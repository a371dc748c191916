// SPDX-License-Identifier: Apache-2.0
#include "pjrt/named_value.h"

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

bool has_no_value(const PJRT_NamedValue& value) noexcept {
  return value.value_size > 0 &&
         ((value.type == PJRT_NamedValue_kString && value.string_value == nullptr) ||
          (value.type == PJRT_NamedValue_kInt64List && value.int64_array_value == nullptr));
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

// Values that a plugin announces and does not give are left out.
NamedValues from_pjrt(const PJRT_NamedValue* values, std::size_t num_values) {
  NamedValues result;
  for (std::size_t i = 0; values != nullptr && i < num_values; ++i) {
    const PJRT_NamedValue& value = values[i];
    if (value.name == nullptr || has_no_value(value)) {
      continue;
    }
    NamedValue& out = result[std::string(value.name, value.name_size)];
    switch (value.type) {
      case PJRT_NamedValue_kString:
        out = value.value_size == 0 ? std::string()
                                    : std::string(value.string_value, value.value_size);
        break;
      case PJRT_NamedValue_kInt64:
        out = value.int64_value;
        break;
      case PJRT_NamedValue_kInt64List:
        out = std::vector<std::int64_t>(value.int64_array_value,
                                        value.int64_array_value + value.value_size);
        break;
      case PJRT_NamedValue_kFloat:
        out = value.float_value;
        break;
      case PJRT_NamedValue_kBool:
        out = value.bool_value;
        break;
      default:
        result.erase(std::string(value.name, value.name_size));
        break;
    }
  }
  return result;
}

}  // namespace cyxla::pjrt
