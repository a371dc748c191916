// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cyxla::pjrt {

// Element type (a PJRT_Buffer_Type) and dimensions of an input or output, as the plugin reports
// them.
struct ValueType {
  std::int32_t element_type = 0;
  std::vector<std::int64_t> dimensions;
};

// The HLO module that a plugin compiled a program to. Every function returns std::nullopt when the
// format is not HLO or the bytes are malformed.
struct OptimizedProgram {
  std::string format;
  std::string code;

  // Counts the instructions of all computations.
  std::optional<std::int64_t> num_instructions() const;
  // Also returns std::nullopt when an input is not a plain array. Types that PJRT lacks are
  // INVALID.
  std::optional<std::vector<ValueType>> input_types() const;
};

}  // namespace cyxla::pjrt
