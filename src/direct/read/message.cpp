// SPDX-License-Identifier: Apache-2.0
#include "direct/read/message.h"

#include <algorithm>
#include <string>

#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

const Row* find_row(std::span<const Row> table, std::uint32_t number) {
  const auto row = std::ranges::lower_bound(table, number, {}, &Row::number);
  return row != table.end() && row->number == number ? &*row : nullptr;
}

// Calls `visit` with each number of a field; false when packed ones are malformed.
template <typename Visit>
bool for_each_number(const wire::Field& value, Visit visit) {
  if (value.type == wire::Type::kVarint) {
    visit(value.number);
    return true;
  }
  for (std::string_view rest = value.bytes; !rest.empty();) {
    const auto number = wire::take_varint(rest);
    if (!number) {
      return false;
    }
    visit(*number);
  }
  return value.type == wire::Type::kBytes;
}

bool has_kind(const wire::Field& value, Kind kind) {
  switch (kind) {
    case Kind::kNumber:
    case Kind::kFlag:
      return value.type == wire::Type::kVarint;
    case Kind::kNumbers:
      return for_each_number(value, [](std::uint64_t) {});
    default:
      return value.type == wire::Type::kBytes;
  }
}

bool is_unset(const wire::Field& value, Kind kind) {
  if (kind == Kind::kBytes) {
    return value.bytes.empty();
  }
  bool is_zero = true;
  for_each_number(value, [&](std::uint64_t number) { is_zero = is_zero && number == 0; });
  return is_zero;
}

[[noreturn]] void refuse(Reason reason, const char* title, const Row& row, const char* what) {
  throw Refusal(reason, "field " + std::to_string(row.number) + " (" + std::string(row.name) +
                            ") of " + title + " " + what);
}

// Throws Refusal if the row does not allow the value; returns whether callers read it.
bool check(const wire::Field& value, bool is_first, const char* title, const Row& row) {
  if (row.rule == Rule::kRefuse) {
    refuse(Reason::kUnsupportedField, title, row, "is set, which cyxla does not support");
  }
  if (!has_kind(value, row.kind)) {
    refuse(Reason::kUnknownField, title, row, "has an unknown encoding");
  }
  if (row.rule == Rule::kIgnore) {
    return false;
  }
  if (!is_first && row.kind != Kind::kNumbers && row.kind != Kind::kRepeatedBytes) {
    refuse(Reason::kMalformed, title, row, "occurs twice");
  }
  if ((row.kind == Kind::kFlag && value.number > 1) ||
      (row.rule == Rule::kUnset && !is_unset(value, row.kind))) {
    refuse(Reason::kUnsupportedField, title, row, "has a value that cyxla does not support");
  }
  return true;
}

}  // namespace

void read_fields(std::string_view bytes, const char* title, std::span<const Row> table,
                 std::span<wire::Field> values) {
  wire::Reader reader(bytes);
  while (const auto value = reader.next()) {
    const Row* row = find_row(table, value->field);
    if (row == nullptr) {
      throw Refusal(Reason::kUnknownField, std::string(title) + " has field " +
                                               std::to_string(value->field) +
                                               ", which this cyxla does not know");
    }
    wire::Field& read = values[static_cast<std::size_t>(row - table.data())];
    if (check(*value, read.field == 0, title, *row)) {
      read = *value;
    }
  }
  if (reader.failed()) {
    throw Refusal(Reason::kMalformed, std::string("the bytes of ") + title + " are malformed");
  }
}

void read_fields(std::string_view bytes, Lenient, std::span<const Row> table,
                 std::span<wire::Field> values) {
  wire::Reader reader(bytes);
  while (const auto value = reader.next()) {
    const Row* row = find_row(table, value->field);
    if (row != nullptr && has_kind(*value, row->kind)) {
      values[static_cast<std::size_t>(row - table.data())] = *value;
    }
  }
}

std::vector<std::uint64_t> repeated_numbers(std::string_view bytes, std::uint32_t field) {
  std::vector<std::uint64_t> numbers;
  wire::Reader reader(bytes);
  while (const auto value = reader.next()) {
    if (value->field == field) {
      for_each_number(*value, [&](std::uint64_t number) { numbers.push_back(number); });
    }
  }
  return numbers;
}

}  // namespace cyxla::direct
