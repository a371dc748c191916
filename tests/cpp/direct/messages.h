// SPDX-License-Identifier: Apache-2.0
// Protobuf messages as XLA writes them, for the tests of their readers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"
#include "direct/read/shape.h"
#include "direct/refusal.h"

namespace cyxla::direct::test {

using Numbers = std::vector<std::uint64_t>;

inline std::string number(std::uint32_t field, std::uint64_t value) {
  std::string message;
  wire::append_varint_field(message, field, value);
  return message;
}

inline std::string bytes(std::uint32_t field, std::string_view value) {
  std::string message;
  wire::append_bytes_field(message, field, value);
  return message;
}

inline std::string fixed64(std::uint32_t field) {
  std::string message;
  wire::append_double_field(message, field, 1.0);
  return message;
}

inline std::string packed(std::uint32_t field, const Numbers& values) {
  std::string varints;
  for (const std::uint64_t value : values) {
    wire::append_varint(varints, value);
  }
  return bytes(field, varints);
}

inline std::string shape(ElementType type, const Numbers& dimensions,
                         const Numbers& minor_to_major) {
  std::string message = number(2, static_cast<std::uint64_t>(type));
  if (!dimensions.empty()) {
    message += packed(3, dimensions);
  }
  std::string layout = minor_to_major.empty() ? "" : packed(1, minor_to_major);
  return message + bytes(5, layout + number(16, 1)) + packed(6, Numbers(dimensions.size()));
}

inline std::string shape(ElementType type, const Numbers& dimensions) {
  Numbers minor_to_major(dimensions.size());
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    minor_to_major[i] = dimensions.size() - 1 - i;
  }
  return shape(type, dimensions, minor_to_major);
}

inline std::string tuple_shape(const std::vector<std::string>& elements) {
  std::string message = number(2, static_cast<std::uint64_t>(ElementType::kTuple));
  for (const std::string& element : elements) {
    message += bytes(4, element);
  }
  return message;
}

inline std::string instruction(std::uint64_t id, std::string_view opcode,
                               const std::string& shape_bytes, const std::string& more = "") {
  return bytes(1, "name") + bytes(2, opcode) + bytes(3, shape_bytes) + number(35, id) + more;
}

inline std::string operands(const Numbers& ids) { return packed(36, ids); }
inline std::string calls(const Numbers& ids) { return packed(38, ids); }

inline std::string counted_loop(std::uint64_t id, const std::string& shape_bytes, int trips,
                                std::uint64_t body) {
  const std::string config = R"({"known_trip_count":{"n":")" + std::to_string(trips) + "\"}}";
  return instruction(id, "while", shape_bytes, bytes(43, config) + calls({body}));
}

inline std::string computation(std::uint64_t id, std::uint64_t root,
                               const std::vector<std::string>& instructions) {
  std::string message = bytes(1, "name") + number(5, id) + number(6, root);
  for (const std::string& one : instructions) {
    message += bytes(2, one);
  }
  return message;
}

// Its first computation is the entry.
inline std::string module(const std::vector<std::string>& computations, std::uint64_t entry,
                          const std::vector<std::string>& inputs, const std::string& output) {
  std::string program_shape = bytes(2, output);
  for (const std::string& input : inputs) {
    program_shape += bytes(1, input) + bytes(3, "x");
  }
  std::string message = bytes(1, "name") + bytes(4, program_shape) + number(6, entry);
  for (const std::string& one : computations) {
    message += bytes(3, one);
  }
  return message;
}

// A value of an instruction, and the path into its tuple.
inline std::string location(std::uint64_t instruction_id, const Numbers& index = {}) {
  return number(4, instruction_id) + (index.empty() ? "" : packed(3, index));
}

inline std::string buffer(std::uint64_t id, std::uint64_t size_bytes,
                          const std::string& defined_at) {
  return number(1, id) + number(2, size_bytes) + bytes(3, defined_at);
}

inline std::string assigned(std::uint64_t id, std::uint64_t size_bytes, std::uint64_t offset = 0) {
  return bytes(9, number(1, id) + number(2, offset) + number(3, size_bytes));
}

inline std::string input_allocation(std::uint64_t index, std::uint64_t size_bytes,
                                    std::uint64_t input, const std::string& more = "") {
  return number(1, index) + number(2, size_bytes) + number(5, 1) + number(6, input) + more;
}

inline std::string output_allocation(std::uint64_t index, std::uint64_t size_bytes,
                                     const std::string& more) {
  return number(1, index) + number(2, size_bytes) + number(7, 1) + more;
}

inline std::string constant_allocation(std::uint64_t index, std::uint64_t size_bytes,
                                       const std::string& more) {
  return number(1, index) + number(2, size_bytes) + number(12, 1) + more;
}

inline std::string allocation(std::uint64_t index, std::uint64_t size_bytes,
                              const std::string& more = "") {
  return number(1, index) + number(2, size_bytes) + more;
}

inline std::string assignment(const std::vector<std::string>& buffers,
                              const std::vector<std::string>& allocations,
                              const std::string& more = "") {
  std::string message;
  for (const std::string& one : buffers) {
    message += bytes(1, one);
  }
  for (const std::string& one : allocations) {
    message += bytes(3, one);
  }
  return message + more;
}

inline std::string slice(std::uint64_t allocation_number, std::uint64_t offset,
                         std::uint64_t size_bytes, ElementType type = ElementType::kF32) {
  return number(1, offset) + number(2, size_bytes) + number(3, allocation_number) +
         number(4, static_cast<std::uint64_t>(type));
}

inline std::string step(std::uint32_t kind, std::string_view name, const std::string& what) {
  return bytes(1, bytes(1, name) + bytes(2, "info") + bytes(kind, what));
}

inline std::string kernel(std::string_view name, const std::string& slices) {
  return step(11, "kernel",
              bytes(1, name) + bytes(2, number(1, 1) + number(2, 1) + number(3, 1)) + slices);
}

// The reason for which `read` refuses; a test failure where it does not.
template <typename Read>
std::string refusal(Read read) {
  try {
    read();
  } catch (const Refusal& reason) {
    return reason.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

}  // namespace cyxla::direct::test
