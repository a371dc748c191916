// SPDX-License-Identifier: Apache-2.0
// Reads protobuf messages by tables of their fields. A field that a newer plugin writes may change
// the meaning of the others, so a field that is not in the table is a Refusal.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/wire.h"

namespace cyxla::direct {

// What a field holds. Only kNumbers and kRepeatedBytes may occur more than once.
enum class Kind : std::uint8_t {
  kNumber,         // an integer or an enum
  kFlag,           // a bool
  kNumbers,        // repeated integers, enums or bools, packed or not
  kBytes,          // a string, bytes, a message, or packed floating-point numbers
  kRepeatedBytes,  // repeated strings or messages
};

// What cyxla does with a field.
enum class Rule : std::uint8_t {
  kRead,
  kIgnore,  // it changes nothing for cyxla; only its wire type is checked
  kUnset,   // it may be present with its default value
  kRefuse,  // its meaning is known and not supported
};

// A field of a message. A message's table is an array of these, in ascending order.
struct Row {  // NOLINT(clang-analyzer-optin.performance.Padding): tables read best in this order
  std::uint32_t number = 0;
  std::string_view name;  // as in the .proto file
  Kind kind = Kind::kNumber;
  Rule rule = Rule::kRead;
};

// For estimates and names: fields that the table does not describe are skipped, and so is the rest
// of a malformed message.
struct Lenient {};

// Stores each field that is read in the element of `values` with its row's index; of a repeated one
// the last value. `title` is the message in refusals, such as "a kernel step". Throws Refusal.
void read_fields(std::string_view bytes, const char* title, std::span<const Row> table,
                 std::span<wire::Field> values);
void read_fields(std::string_view bytes, Lenient, std::span<const Row> table,
                 std::span<wire::Field> values);

// The values of a kNumbers field of a message that read_fields() accepted.
std::vector<std::uint64_t> repeated_numbers(std::string_view bytes, std::uint32_t field);

// One message, checked by its table. Fields are named by string literals; a name does not compile
// without a row of that kind to be read. An absent field has its default value. The bytes must
// outlive the message.
template <const auto& table>
class Message {
  static_assert(std::ranges::adjacent_find(table, std::ranges::greater_equal{}, &Row::number) ==
                std::ranges::end(table));

  template <Kind... kinds>
  struct Name {
    consteval Name(const char* name)  // NOLINT(google-explicit-constructor)
        : index(static_cast<std::size_t>(std::ranges::find(table, name, &Row::name) - table)) {
      const Row& row = table[index];  // without a row of the name: not a constant expression
      if (row.rule != Rule::kRead || !(sizeof...(kinds) == 0 || ((row.kind == kinds) || ...))) {
        throw "the field is not to be read, or is of another kind";
      }
    }
    constexpr std::uint32_t number() const { return table[index].number; }
    std::size_t index;
  };

 public:
  using AnyName = Name<>;

  Message(std::string_view bytes, const char* title) : bytes_(bytes) {
    read_fields(bytes, title, table, values_);
  }
  Message(std::string_view bytes, Lenient lenient) : bytes_(bytes) {
    read_fields(bytes, lenient, table, values_);
  }

  bool has(AnyName name) const noexcept { return values_[name.index].field != 0; }
  std::uint64_t number(Name<Kind::kNumber> name) const noexcept {
    return values_[name.index].number;
  }
  bool flag(Name<Kind::kFlag> name) const noexcept { return values_[name.index].number != 0; }
  std::string_view bytes(Name<Kind::kBytes> name) const noexcept {
    return values_[name.index].bytes;
  }
  std::vector<std::uint64_t> numbers(Name<Kind::kNumbers> name) const {
    return repeated_numbers(bytes_, name.number());
  }
  // Calls `visit` with each value, in order.
  template <typename Visit>
  void for_each(Name<Kind::kRepeatedBytes> name, Visit visit) const {
    static_cast<void>(wire::for_each_bytes_field(bytes_, name.number(), visit));
  }

  // By row of the table; absent fields have the number 0.
  const auto& values() const noexcept { return values_; }

 private:
  std::string_view bytes_;
  std::array<wire::Field, std::size(table)> values_;
};

}  // namespace cyxla::direct
