// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/wire.h"

namespace cyxla::direct {

// Walks the fields of one protobuf message that only holds what its caller knows: the caller names
// each field it uses or ignores, and everything else is a Refusal, because a field that a newer
// plugin writes may change what the others mean. The message must outlive the walk.
class Message {
 public:
  // `name` is the message's in refusals, a literal such as "a kernel step".
  Message(std::string_view bytes, const char* name) noexcept : reader_(bytes), name_(name) {}

  // Goes to the next field; false at the end.
  bool next();
  std::uint32_t field() const noexcept { return current_.field; }
  bool is_bytes() const noexcept { return current_.type == wire::Type::kBytes; }

  // The value of a field that occurs once at most.
  std::uint64_t number();
  bool flag();
  std::string_view bytes();

  // One value of a repeated field.
  std::string_view repeated_bytes() const;
  // Appends the values of a repeated field, packed or not.
  void repeated_numbers(std::vector<std::uint64_t>& values) const;

  // Leaves out a field that changes nothing here.
  void ignore_number() const { expect(wire::Type::kVarint); }
  void ignore_bytes() const { expect(wire::Type::kBytes); }
  void ignore_repeated_numbers() const {
    std::vector<std::uint64_t> values;
    repeated_numbers(values);  // malformed ones are refused all the same
  }

  // Refuses the present field: unknown to the caller, or with a value that it does not take.
  [[noreturn]] void refuse_unknown() const;
  [[noreturn]] void refuse_value() const;

 private:
  void expect(wire::Type type) const;
  void expect_first();

  static constexpr std::uint32_t kMaxField = 128;

  wire::Reader reader_;
  const char* name_;
  wire::Field current_;
  std::bitset<kMaxField> seen_;
};

}  // namespace cyxla::direct
