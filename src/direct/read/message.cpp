// SPDX-License-Identifier: Apache-2.0
#include "direct/read/message.h"

#include <string>

#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

std::string field_of(std::uint32_t field, const char* name) {
  return "field " + std::to_string(field) + " of " + name;
}

}  // namespace

bool Message::next() {
  if (const auto field = reader_.next()) {
    current_ = *field;
    return true;
  }
  if (reader_.failed()) {
    throw Refusal(std::string("the bytes of ") + name_ + " are malformed");
  }
  return false;
}

std::uint64_t Message::number() {
  expect(wire::Type::kVarint);
  expect_first();
  return current_.number;
}

bool Message::flag() {
  const std::uint64_t value = number();
  if (value > 1) {
    refuse_value();
  }
  return value == 1;
}

std::string_view Message::bytes() {
  expect(wire::Type::kBytes);
  expect_first();
  return current_.bytes;
}

std::string_view Message::repeated_bytes() const {
  expect(wire::Type::kBytes);
  return current_.bytes;
}

void Message::repeated_numbers(std::vector<std::uint64_t>& values) const {
  if (current_.type == wire::Type::kVarint) {
    values.push_back(current_.number);
    return;
  }
  expect(wire::Type::kBytes);
  for (std::string_view rest = current_.bytes; !rest.empty();) {
    const auto value = wire::take_varint(rest);
    if (!value) {
      refuse_value();
    }
    values.push_back(*value);
  }
}

void Message::refuse_unknown() const {
  throw Refusal(field_of(current_.field, name_) + " is unknown");
}

void Message::refuse_value() const {
  throw Refusal(field_of(current_.field, name_) + " has an unknown value");
}

void Message::expect(wire::Type type) const {
  if (current_.type != type) {
    throw Refusal(field_of(current_.field, name_) + " has an unknown wire type");
  }
}

void Message::expect_first() {
  if (current_.field >= kMaxField) {
    refuse_unknown();
  }
  if (seen_.test(current_.field)) {
    throw Refusal(field_of(current_.field, name_) + " occurs twice");
  }
  seen_.set(current_.field);
}

}  // namespace cyxla::direct
