// SPDX-License-Identifier: Apache-2.0
#include "direct/read/literal.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "direct/read/tables.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

using ElementsName = Message<proto::kLiteral>::AnyName;

// The field that holds the elements of a type.
struct ElementsField {
  ElementType type;
  ElementsName name;
};
constexpr ElementsField kElementsFields[] = {
    {ElementType::kPred, "preds"}, {ElementType::kU8, "u8s"},     {ElementType::kS32, "s32s"},
    {ElementType::kS64, "s64s"},   {ElementType::kU32, "u32s"},   {ElementType::kU64, "u64s"},
    {ElementType::kF32, "f32s"},   {ElementType::kF64, "f64s"},   {ElementType::kF16, "f16s"},
    {ElementType::kC64, "c64s"},   {ElementType::kBF16, "bf16s"}, {ElementType::kS8, "s8s"},
    {ElementType::kU16, "u16s"},   {ElementType::kS16, "s16s"},   {ElementType::kC128, "c128s"},
};

ElementsName name_of(ElementType type) {
  const auto* const found = std::ranges::find(kElementsFields, type, &ElementsField::type);
  if (found == std::end(kElementsFields)) {
    throw Refusal(Reason::kUnsupportedType, "a constant has elements of an unsupported type");
  }
  return found->name;
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
      throw Refusal(Reason::kMalformed, "a constant has an element outside its type");
    }
    // Little-endian, so the lowest bytes come first.
    elements.append(reinterpret_cast<const char*>(&value), size_bytes);
  }
  return elements;
}

}  // namespace

std::string read_literal(std::string_view bytes, const Shape& shape) {
  const ElementsName name = name_of(shape.element_type);
  const Message<proto::kLiteral> literal(bytes, "a constant");
  if (!literal.has("shape") || read_shape(literal.bytes("shape")) != shape) {
    throw Refusal(Reason::kMalformed,
                  "the shape of a constant differs from that of its instruction");
  }
  const auto num_fields = std::ranges::count_if(
      literal.values(), [](const wire::Field& value) { return value.field != 0; });
  if (num_fields > (literal.has(name) ? 2 : 1)) {
    throw Refusal(Reason::kMalformed, "a constant has elements of another type than its shape");
  }
  std::string elements =
      proto::kLiteral[name.index].kind == Kind::kNumbers
          ? from_varints(repeated_numbers(bytes, name.number()), shape.element_type)
          : std::string(literal.values()[name.index].bytes);
  if (elements.size() != shape.size_bytes) {
    throw Refusal(Reason::kMalformed, "a constant of " + std::to_string(shape.size_bytes) +
                                          " bytes has elements for " +
                                          std::to_string(elements.size()));
  }
  return elements;
}

}  // namespace cyxla::direct
