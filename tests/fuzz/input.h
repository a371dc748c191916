// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "direct/read/buffers.h"

namespace cyxla::fuzz {

// One input of the fuzzer, itself a protobuf message: the expected bytes of each input (field 1,
// packed) and output (2, packed) of the program, and the serialized executable (3), which points
// into the message.
struct Input {
  direct::Expected expected;
  std::string_view serialized;
};

inline constexpr std::uint32_t kExecutableField = 3;
inline constexpr std::size_t kMaxArrays = 256;

// Returns std::nullopt when the bytes are not such a message.
std::optional<Input> read_input(std::string_view bytes);

}  // namespace cyxla::fuzz
