// SPDX-License-Identifier: Apache-2.0
#include "direct/read/literal.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "direct/read/message.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

// The field of LiteralProto that holds elements of a type.
std::uint32_t field_of(ElementType type) {
  switch (type) {
    case ElementType::kPred:
      return 2;
    case ElementType::kU8:
      return 3;
    case ElementType::kS32:
      return 4;
    case ElementType::kS64:
      return 5;
    case ElementType::kU32:
      return 6;
    case ElementType::kU64:
      return 7;
    case ElementType::kF32:
      return 8;
    case ElementType::kF64:
      return 9;
    case ElementType::kF16:
      return 11;
    case ElementType::kC64:
      return 12;
    case ElementType::kBF16:
      return 13;
    case ElementType::kS8:
      return 15;
    case ElementType::kU16:
      return 16;
    case ElementType::kS16:
      return 17;
    case ElementType::kC128:
      return 18;
    case ElementType::kTuple:
      break;
  }
  throw Refusal("a constant has elements of an unknown type");
}

// Types whose elements are varints; those of the others are their own bytes.
bool is_varint(ElementType type) {
  return type == ElementType::kPred || type == ElementType::kS32 || type == ElementType::kU32 ||
         type == ElementType::kS64 || type == ElementType::kU64;
}

// Whether the varint is an element of this type: negative numbers are extended to 64 bits.
bool fits(std::uint64_t value, ElementType type) {
  switch (type) {
    case ElementType::kPred:
      return value <= 1;
    case ElementType::kU32:
      return value <= std::numeric_limits<std::uint32_t>::max();
    case ElementType::kS32: {
      const auto number = static_cast<std::int64_t>(value);
      return number >= std::numeric_limits<std::int32_t>::min() &&
             number <= std::numeric_limits<std::int32_t>::max();
    }
    default:
      return true;
  }
}

std::string from_varints(const std::vector<std::uint64_t>& values, ElementType type) {
  const std::size_t size_bytes = element_bytes(type);
  std::string elements;
  elements.reserve(values.size() * size_bytes);
  for (const std::uint64_t value : values) {
    if (!fits(value, type)) {
      throw Refusal("a constant has an element outside its type");
    }
    // Little-endian, so the lowest bytes come first.
    elements.append(reinterpret_cast<const char*>(&value), size_bytes);
  }
  return elements;
}

}  // namespace

std::string read_literal(std::string_view bytes, const Shape& shape) {
  const std::uint32_t elements_field = field_of(shape.element_type);
  std::optional<Shape> own_shape;
  std::vector<std::uint64_t> varints;
  std::string elements;
  Message message(bytes, "a constant");
  while (message.next()) {
    if (message.field() == 1) {
      own_shape = read_shape(message.bytes());
    } else if (message.field() != elements_field) {
      message.refuse_unknown();
    } else if (is_varint(shape.element_type)) {
      message.repeated_numbers(varints);
    } else {
      elements = message.bytes();
    }
  }
  if (is_varint(shape.element_type)) {
    elements = from_varints(varints, shape.element_type);
  }
  if (own_shape != shape) {
    throw Refusal("the shape of a constant differs from that of its elements");
  }
  if (elements.size() != shape.size_bytes) {
    throw Refusal("a constant of " + std::to_string(shape.size_bytes) + " bytes has elements for " +
                  std::to_string(elements.size()));
  }
  return elements;
}

}  // namespace cyxla::direct
