// SPDX-License-Identifier: Apache-2.0
#include "base/wire.h"

#include <bit>
#include <cstring>

namespace cyxla::wire {

static_assert(std::endian::native == std::endian::little,
              "fixed-width fields are copied without byte swapping");

namespace {

void append_tag(std::string& out, std::uint32_t field, Type type) {
  append_varint(out, (std::uint64_t{field} << 3) | static_cast<std::uint64_t>(type));
}

}  // namespace

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void append_varint_field(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_tag(out, field, Type::kVarint);
  append_varint(out, value);
}

void append_double_field(std::string& out, std::uint32_t field, double value) {
  append_tag(out, field, Type::kFixed64);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_bytes_field(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_tag(out, field, Type::kBytes);
  append_varint(out, bytes.size());
  out.append(bytes);
}

std::optional<std::uint64_t> take_varint(std::string_view& bytes) noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Reader::fixed(std::size_t size_bytes) noexcept {
  if (rest_.size() < size_bytes) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, rest_.data(), size_bytes);
  rest_.remove_prefix(size_bytes);
  return value;
}

std::optional<Field> Reader::next() noexcept {
  if (failed_ || rest_.empty()) {
    return std::nullopt;
  }
  failed_ = true;  // until the whole field is read
  const std::optional<std::uint64_t> tag = take_varint(rest_);
  if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > 0x1fffffff) {
    return std::nullopt;
  }
  Field field;
  field.field = static_cast<std::uint32_t>(*tag >> 3);
  std::optional<std::uint64_t> number;
  switch (*tag & 7) {
    case static_cast<unsigned>(Type::kVarint):
      field.type = Type::kVarint;
      number = take_varint(rest_);
      break;
    case static_cast<unsigned>(Type::kFixed64):
      field.type = Type::kFixed64;
      number = fixed(8);
      break;
    case static_cast<unsigned>(Type::kFixed32):
      field.type = Type::kFixed32;
      number = fixed(4);
      break;
    case static_cast<unsigned>(Type::kBytes):
      field.type = Type::kBytes;
      number = take_varint(rest_);
      if (!number || *number > rest_.size()) {
        return std::nullopt;
      }
      field.bytes = rest_.substr(0, *number);
      rest_.remove_prefix(*number);
      break;
    default:
      return std::nullopt;
  }
  if (!number) {
    return std::nullopt;
  }
  field.number = *number;
  failed_ = false;
  return field;
}

}  // namespace cyxla::wire
