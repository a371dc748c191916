// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "require.h"

namespace cyxla::fuzz {

// Reads protobuf messages that must be exactly as expected, with the shortest encoding of every
// number. Independent of base/wire, which it checks.
class StrictMessage {
 public:
  explicit StrictMessage(std::string_view bytes) : rest_(bytes) {}

  bool is_empty() const { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      require(!rest_.empty() && shift < 70, "a number ends");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      require(shift < 63 || byte <= 1, "a number has 64 bits");
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) {
        require(byte != 0 || shift == 0, "a number is short");
        return value;
      }
    }
  }
  // Returns the number and the wire type of the next field.
  std::pair<std::uint64_t, unsigned> key() {
    const std::uint64_t value = varint();
    return {value >> 3, static_cast<unsigned>(value & 7)};
  }
  std::uint64_t varint_field(std::uint64_t number) {
    require(key() == std::pair(number, 0U), "key of a number");
    return varint();
  }
  std::string_view bytes_field(std::uint64_t number) {
    require(key() == std::pair(number, 2U), "key of bytes");
    return bytes();
  }
  std::string_view bytes() {
    const std::uint64_t size = varint();
    require(size <= rest_.size(), "length of bytes");
    const std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return result;
  }
  std::uint64_t fixed64() {
    require(rest_.size() >= 8, "a double has eight bytes");
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      bits |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    }
    rest_.remove_prefix(8);
    return bits;
  }

 private:
  std::string_view rest_;
};

}  // namespace cyxla::fuzz
