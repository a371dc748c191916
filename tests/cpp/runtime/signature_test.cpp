// SPDX-License-Identifier: Apache-2.0
#include "runtime/signature.h"

#include <gtest/gtest.h>

#include <limits>

#include "pjrt/pjrt_header.h"
#include "support/errors.h"

namespace cyxla::runtime {
namespace {

using test::message_of;

TEST(Signature, SizesAreProducts) {
  const ArrayType matrix{PJRT_Buffer_Type_F64, {3, 4}};
  EXPECT_EQ(matrix.num_elements(), 12U);
  EXPECT_EQ(matrix.size_bytes(), 96U);
  EXPECT_EQ(matrix.text(), "F64[3,4]");
  const ArrayType scalar{PJRT_Buffer_Type_C128, {}};
  EXPECT_EQ(scalar.num_elements(), 1U);
  EXPECT_EQ(scalar.size_bytes(), 16U);
  EXPECT_EQ(scalar.text(), "C128[]");
  const ArrayType empty{PJRT_Buffer_Type_PRED, {5, 0, 7}};
  EXPECT_EQ(empty.num_elements(), 0U);
  EXPECT_EQ(empty.size_bytes(), 0U);
  EXPECT_EQ(empty.text(), "PRED[5,0,7]");
}

TEST(Signature, NegativeDimensionsAreAnError) {
  const ArrayType type{PJRT_Buffer_Type_F32, {3, -1}};
  EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { type.num_elements(); }),
            "F32[3,-1] has a negative dimension");
}

TEST(Signature, ElementsWithoutWholeBytesAreAnError) {
  const ArrayType nibbles{PJRT_Buffer_Type_S4, {2}};
  EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { nibbles.size_bytes(); }),
            "S4[2] has an element type that cyxla cannot pass to native code (PJRT type " +
                std::to_string(PJRT_Buffer_Type_S4) + ")");
  const ArrayType unknown{1000, {}};
  EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { unknown.size_bytes(); }),
            "unknown type[] has an element type that cyxla cannot pass to native code (PJRT type "
            "1000)");
}

TEST(Signature, SizesBeyondTheAddressSpaceAreAnError) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const ArrayType elements{PJRT_Buffer_Type_S8, {kMax, 3}};
  EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { elements.num_elements(); }),
            "S8[9223372036854775807,3] is larger than the address space");
  const ArrayType bytes{PJRT_Buffer_Type_F64, {kMax / 2}};
  EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { bytes.size_bytes(); }),
            "F64[4611686018427387903] is larger than the address space");
}

}  // namespace
}  // namespace cyxla::runtime
