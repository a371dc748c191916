// SPDX-License-Identifier: Apache-2.0
// The subset of protobuf's wire format that compile options and serialized executables need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cyxla::wire {

enum class Type : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& out, std::uint64_t value);
void append_varint_field(std::string& out, std::uint32_t field, std::uint64_t value);
void append_double_field(std::string& out, std::uint32_t field, double value);
void append_bytes_field(std::string& out, std::uint32_t field, std::string_view bytes);

// Removes a varint from the front of `bytes` and returns it; std::nullopt when it is malformed.
[[nodiscard]] std::optional<std::uint64_t> take_varint(std::string_view& bytes) noexcept;

// A field of a message: `number` for the varint and fixed types, otherwise `bytes`, which points
// into the message.
struct Field {
  std::uint32_t field = 0;
  Type type = Type::kVarint;
  std::uint64_t number = 0;
  std::string_view bytes;
};

// Walks the fields of a message in order. The message must outlive the reader and the fields.
class Reader {
 public:
  explicit Reader(std::string_view message) : rest_(message) {}

  // Returns the next field; std::nullopt at the end of the message, or at its first malformed byte,
  // after which failed() is true.
  [[nodiscard]] std::optional<Field> next() noexcept;
  bool failed() const noexcept { return failed_; }

 private:
  std::optional<std::uint64_t> fixed(std::size_t size_bytes) noexcept;

  std::string_view rest_;
  bool failed_ = false;
};

// Calls `visit` with the bytes of each occurrence of a field. Returns false when the message is
// malformed.
template <typename Visit>
[[nodiscard]] bool for_each_bytes_field(std::string_view message, std::uint32_t number,
                                        Visit visit) {
  Reader reader(message);
  while (const auto field = reader.next()) {
    if (field->field == number && field->type == Type::kBytes) {
      visit(field->bytes);
    }
  }
  return !reader.failed();
}

}  // namespace cyxla::wire
