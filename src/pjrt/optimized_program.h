// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cyxla::pjrt {

// Element type (a PJRT_Buffer_Type) and dimensions of an input or output, as the plugin states
// them.
struct ValueType {
  std::int32_t element_type = 0;
  std::vector<std::int64_t> dimensions;
};

// The HLO module that a plugin made of a program. Every function returns nothing where the plugin
// gave another format than HLO, or bytes that cannot be read.
struct OptimizedProgram {
  std::string format;
  std::string code;

  // Those of all computations together.
  std::optional<std::int64_t> num_instructions() const;
  // Nothing, too, where the inputs are not plain arrays. Types that PJRT does not have are INVALID.
  std::optional<std::vector<ValueType>> input_types() const;
};

}  // namespace cyxla::pjrt
