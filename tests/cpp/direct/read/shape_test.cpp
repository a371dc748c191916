// SPDX-License-Identifier: Apache-2.0
#include "direct/read/shape.h"

#include "direct/messages.h"

namespace cyxla::direct {
namespace {

using test::bytes;
using test::number;
using test::packed;
using test::refusal;
using test::shape;
using Sizes = std::vector<std::size_t>;

TEST(Shape, OfARowMajorArray) {
  const Shape array = read_shape(shape(ElementType::kF64, {2, 3, 4}));
  EXPECT_EQ(array.element_type, ElementType::kF64);
  EXPECT_EQ(array.dimensions, (Sizes{2, 3, 4}));
  EXPECT_EQ(array.size_bytes, 192u);
  EXPECT_TRUE(array.is_row_major());
  EXPECT_EQ(array.strides(), (Sizes{96, 32, 8}));
  EXPECT_EQ(array.leaves(), std::vector<Shape>{array});
}

TEST(Shape, OfATransposedArray) {
  const Shape array = read_shape(shape(ElementType::kF32, {2, 3, 4}, {0, 2, 1}));
  EXPECT_FALSE(array.is_row_major());
  EXPECT_EQ(array.strides(), (Sizes{4, 32, 8}));
}

TEST(Shape, OfAScalarAndAnEmptyArray) {
  EXPECT_EQ(read_shape(shape(ElementType::kC128, {})).size_bytes, 16u);
  EXPECT_TRUE(read_shape(shape(ElementType::kC128, {})).is_row_major());
  const Shape empty = read_shape(shape(ElementType::kF32, {1ull << 62, 0, 1ull << 62}));
  EXPECT_EQ(empty.size_bytes, 0u);
}

TEST(Shape, OfATuple) {
  const Shape tuple =
      read_shape(test::tuple_shape({shape(ElementType::kS32, {2}), shape(ElementType::kPred, {})}));
  ASSERT_TRUE(tuple.is_tuple());
  EXPECT_FALSE(tuple.is_row_major());
  EXPECT_EQ(tuple.size_bytes, 16u);
  ASSERT_EQ(tuple.leaves().size(), 2u);
  EXPECT_EQ(tuple.leaves()[0].size_bytes, 8u);
  EXPECT_TRUE(read_shape(test::tuple_shape({})).leaves().empty());
}

struct RefusedShape {
  std::string bytes;
  std::string reason;
};

TEST(Shape, RefusesWhatIsNoPlainArray) {
  const std::string scalar = shape(ElementType::kF32, {});
  const std::string layout = bytes(5, packed(1, {0}));
  const std::string f32 = number(2, 11);
  const std::string type = "an array has elements of type ";
  const std::string unfit = "the layout of an array does not fit its shape";
  const std::vector<RefusedShape> cases = {
      {number(2, 21) + bytes(5, ""), type + "21, which cyxla does not support"},
      {bytes(5, ""), type + "0, which cyxla does not support"},
      {number(2, 17) + bytes(5, ""), type + "17, which cyxla does not support"},
      {f32 + packed(3, {2}) + layout + packed(6, {1}),
       "field 6 (is_dynamic_dimension) of a shape has a value that cyxla does not support"},
      {f32, unfit},
      {f32 + packed(3, {2}) + bytes(5, ""), unfit},
      {f32 + packed(3, {2}) + bytes(5, packed(1, {1})), unfit},
      {f32 + packed(3, {2, 2}) + bytes(5, packed(1, {0, 0})), unfit},
      {f32 + bytes(4, scalar) + bytes(5, ""), unfit},
      {shape(ElementType::kF32, {1 << 18, 2}), "an array is larger than 1048576 bytes"},
      {shape(ElementType::kF32, {1ull << 32, 1ull << 32}), "an array is larger than 1048576 bytes"},
      {shape(ElementType::kF32, {1ull << 62, 2}), "an array is larger than 1048576 bytes"},
      {test::tuple_shape({test::tuple_shape({scalar})}), "an array is in a tuple of tuples"},
      {test::tuple_shape({test::tuple_shape({})}), "an array is in a tuple of tuples"},
      {number(2, 13) + packed(3, {2}), "a tuple has the shape of an array"},
      {number(2, 13) + bytes(5, ""), "a tuple has the shape of an array"},
      {scalar + number(2, 11), "field 2 (element_type) of a shape occurs twice"},
      {scalar + number(7, 1), "a shape has field 7, which this cyxla does not know"},
      {f32 + bytes(5, number(8, 1)),
       "field 8 (memory_space) of a layout is set, which cyxla does not support"},
      {f32 + bytes(5, number(16, 2)), "a layout pads to a multiple of 2 elements"},
  };
  for (const RefusedShape& refused : cases) {
    EXPECT_EQ(refusal([&] { read_shape(refused.bytes); }), refused.reason);
  }
}

TEST(Shape, TakesTheLargestArray) {
  EXPECT_EQ(read_shape(shape(ElementType::kF32, {1 << 18})).size_bytes, kMaxArrayBytes);
}

}  // namespace
}  // namespace cyxla::direct
