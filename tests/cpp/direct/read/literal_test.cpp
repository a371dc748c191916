// SPDX-License-Identifier: Apache-2.0
#include "direct/read/literal.h"

#include <cstring>

#include "direct/messages.h"

namespace cyxla::direct {
namespace {

using test::bytes;
using test::number;
using test::packed;
using test::refusal;

template <typename Element>
std::string memory_of(const std::vector<Element>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element)};
}

std::string read(ElementType type, const test::Numbers& dimensions, const std::string& elements) {
  const std::string shape = test::shape(type, dimensions);
  return read_literal(bytes(1, shape) + elements, read_shape(shape));
}

TEST(Literal, OfTypesWrittenAsBytes) {
  struct Case {
    ElementType type;
    std::uint32_t field;
  };
  const std::vector<Case> cases = {{ElementType::kU8, 3},   {ElementType::kF32, 8},
                                   {ElementType::kF64, 9},  {ElementType::kF16, 11},
                                   {ElementType::kC64, 12}, {ElementType::kBF16, 13},
                                   {ElementType::kS8, 15},  {ElementType::kU16, 16},
                                   {ElementType::kS16, 17}, {ElementType::kC128, 18}};
  for (const Case& one : cases) {
    std::string elements(2 * element_bytes(one.type), '\0');
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<char>(200 + i);
    }
    EXPECT_EQ(read(one.type, {2}, bytes(one.field, elements)), elements);
  }
}

TEST(Literal, OfTypesWrittenAsVarints) {
  const auto minus = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  EXPECT_EQ(read(ElementType::kPred, {3}, packed(2, {1, 0, 1})), std::string("\1\0\1", 3));
  EXPECT_EQ(read(ElementType::kS32, {3}, packed(4, {minus(-2), 0, 2147483647})),
            memory_of<std::int32_t>({-2, 0, 2147483647}));
  EXPECT_EQ(read(ElementType::kU32, {2}, packed(6, {4294967295, 0})),
            memory_of<std::uint32_t>({4294967295, 0}));
  EXPECT_EQ(read(ElementType::kS64, {2}, packed(5, {minus(-1), 1})),
            memory_of<std::int64_t>({-1, 1}));
  EXPECT_EQ(read(ElementType::kU64, {2}, packed(7, {minus(-1), 1})),
            memory_of<std::uint64_t>({~std::uint64_t{0}, 1}));
  EXPECT_EQ(read(ElementType::kS32, {2}, number(4, 1) + number(4, 2)),
            memory_of<std::int32_t>({1, 2}));
}

TEST(Literal, WithoutElements) {
  EXPECT_EQ(read(ElementType::kF32, {0}, ""), "");
  EXPECT_EQ(read(ElementType::kS32, {0}, ""), "");
}

TEST(Literal, RefusesElementsOutsideTheirType) {
  const std::string reason = "a constant has an element outside its type";
  EXPECT_EQ(refusal([] { read(ElementType::kPred, {1}, packed(2, {2})); }), reason);
  EXPECT_EQ(refusal([] { read(ElementType::kU32, {1}, packed(6, {1ull << 32})); }), reason);
  EXPECT_EQ(refusal([] { read(ElementType::kS32, {1}, packed(4, {1ull << 31})); }), reason);
  const auto below = static_cast<std::uint64_t>(std::int64_t{-2147483649});
  EXPECT_EQ(refusal([&] { read(ElementType::kS32, {1}, packed(4, {below})); }), reason);
}

TEST(Literal, RefusesAnotherNumberOfElements) {
  EXPECT_EQ(refusal([] { read(ElementType::kF32, {2}, bytes(8, "abcd")); }),
            "a constant of 8 bytes has elements for 4");
  EXPECT_EQ(refusal([] {
              read(ElementType::kS64, {}, packed(5, {1, 2}));
            }),
            "a constant of 8 bytes has elements for 16");
  EXPECT_EQ(refusal([] { read(ElementType::kF32, {2}, ""); }),
            "a constant of 8 bytes has elements for 0");
}

TEST(Literal, RefusesElementsOfAnotherType) {
  EXPECT_EQ(refusal([] { read(ElementType::kF32, {1}, packed(4, {1})); }),
            "a constant has elements of another type than its shape");
}

TEST(Literal, RefusesAnotherShapeOrLayout) {
  const Shape wanted = read_shape(test::shape(ElementType::kF32, {1, 2}));
  const std::string reason = "the shape of a constant differs from that of its instruction";
  for (const std::string& shape :
       {test::shape(ElementType::kF32, {2}), test::shape(ElementType::kF32, {1, 2}, {0, 1})}) {
    const std::string literal = bytes(1, shape) + bytes(8, "abcdefgh");
    EXPECT_EQ(refusal([&] { read_literal(literal, wanted); }), reason);
  }
  const std::string literal = bytes(8, "abcdefgh");
  EXPECT_EQ(refusal([&] { read_literal(literal, wanted); }), reason);
}

TEST(Literal, RefusesTuples) {
  const Shape tuple = read_shape(test::tuple_shape({}));
  EXPECT_EQ(refusal([&] { read_literal("", tuple); }),
            "a constant has elements of an unsupported type");
}

}  // namespace
}  // namespace cyxla::direct
