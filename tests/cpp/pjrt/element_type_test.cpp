// SPDX-License-Identifier: Apache-2.0
#include "pjrt/element_type.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>

#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {
namespace {

const std::map<std::int32_t, std::pair<const char*, std::size_t>> kExpected = {
    {PJRT_Buffer_Type_INVALID, {"INVALID", 0}},
    {PJRT_Buffer_Type_PRED, {"PRED", 1}},
    {PJRT_Buffer_Type_S8, {"S8", 1}},
    {PJRT_Buffer_Type_S16, {"S16", 2}},
    {PJRT_Buffer_Type_S32, {"S32", 4}},
    {PJRT_Buffer_Type_S64, {"S64", 8}},
    {PJRT_Buffer_Type_U8, {"U8", 1}},
    {PJRT_Buffer_Type_U16, {"U16", 2}},
    {PJRT_Buffer_Type_U32, {"U32", 4}},
    {PJRT_Buffer_Type_U64, {"U64", 8}},
    {PJRT_Buffer_Type_F16, {"F16", 2}},
    {PJRT_Buffer_Type_F32, {"F32", 4}},
    {PJRT_Buffer_Type_F64, {"F64", 8}},
    {PJRT_Buffer_Type_BF16, {"BF16", 2}},
    {PJRT_Buffer_Type_C64, {"C64", 8}},
    {PJRT_Buffer_Type_C128, {"C128", 16}},
    {PJRT_Buffer_Type_F8E5M2, {"F8E5M2", 1}},
    {PJRT_Buffer_Type_F8E4M3FN, {"F8E4M3FN", 1}},
    {PJRT_Buffer_Type_F8E4M3B11FNUZ, {"F8E4M3B11FNUZ", 1}},
    {PJRT_Buffer_Type_F8E5M2FNUZ, {"F8E5M2FNUZ", 1}},
    {PJRT_Buffer_Type_F8E4M3FNUZ, {"F8E4M3FNUZ", 1}},
    {PJRT_Buffer_Type_S4, {"S4", 0}},
    {PJRT_Buffer_Type_U4, {"U4", 0}},
    {PJRT_Buffer_Type_TOKEN, {"TOKEN", 0}},
    {PJRT_Buffer_Type_S2, {"S2", 0}},
    {PJRT_Buffer_Type_U2, {"U2", 0}},
    {PJRT_Buffer_Type_F8E4M3, {"F8E4M3", 1}},
    {PJRT_Buffer_Type_F8E3M4, {"F8E3M4", 1}},
    {PJRT_Buffer_Type_F8E8M0FNU, {"F8E8M0FNU", 1}},
    {PJRT_Buffer_Type_F4E2M1FN, {"F4E2M1FN", 0}}};

TEST(ElementType, EveryTypeHasItsNameAndSize) {
  for (const auto& [type, expected] : kExpected) {
    EXPECT_STREQ(element_type_name(type), expected.first);
    EXPECT_EQ(itemsize(type), expected.second) << expected.first;
  }
  // Every value from the first to the last has a name.
  EXPECT_EQ(kExpected.rbegin()->first + 1, static_cast<std::int32_t>(kExpected.size()));
}

TEST(ElementType, OtherValuesAreUnknown) {
  for (const std::int32_t type :
       {-1, kExpected.rbegin()->first + 1, 1000, std::numeric_limits<std::int32_t>::min(),
        std::numeric_limits<std::int32_t>::max()}) {
    EXPECT_EQ(itemsize(type), 0U) << type;
    EXPECT_STREQ(element_type_name(type), "unknown type") << type;
  }
}

TEST(ElementType, FindsTheTypesOfXla) {
  const std::map<std::uint64_t, std::int32_t> expected = {
      {0, PJRT_Buffer_Type_INVALID},
      {1, PJRT_Buffer_Type_PRED},
      {5, PJRT_Buffer_Type_S64},
      {9, PJRT_Buffer_Type_U64},
      {10, PJRT_Buffer_Type_F16},
      {12, PJRT_Buffer_Type_F64},
      {15, PJRT_Buffer_Type_C64},
      {16, PJRT_Buffer_Type_BF16},
      {17, PJRT_Buffer_Type_TOKEN},
      {18, PJRT_Buffer_Type_C128},
      {19, PJRT_Buffer_Type_F8E5M2},
      {20, PJRT_Buffer_Type_F8E4M3FN},
      {21, PJRT_Buffer_Type_S4},
      {23, PJRT_Buffer_Type_F8E4M3B11FNUZ},
      {24, PJRT_Buffer_Type_F8E5M2FNUZ},
      {25, PJRT_Buffer_Type_F8E4M3FNUZ},
      {28, PJRT_Buffer_Type_F8E4M3},
      {29, PJRT_Buffer_Type_F8E3M4},
      {32, PJRT_Buffer_Type_F4E2M1FN},
      {33, PJRT_Buffer_Type_F8E8M0FNU},
      {13, PJRT_Buffer_Type_INVALID},
      {34, PJRT_Buffer_Type_INVALID},
      {std::uint64_t{1} << 40, PJRT_Buffer_Type_INVALID}};
  for (const auto& [xla, pjrt] : expected) {
    EXPECT_EQ(element_type_of_xla(xla), pjrt) << xla;
  }
}

}  // namespace
}  // namespace cyxla::pjrt
