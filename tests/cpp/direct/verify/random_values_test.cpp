// SPDX-License-Identifier: Apache-2.0
#include "direct/verify/random_values.h"

#include <cyxla/cyxla.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace cyxla::direct {
namespace {

template <typename Value>
std::vector<Value> filled(std::int32_t type, Values values, std::uint64_t seed = 1) {
  std::vector<Value> result(1000);
  fill(result.data(), result.size() * sizeof(Value), type, values, seed);
  return result;
}

template <typename Value, typename Predicate>
std::ptrdiff_t count(const std::vector<Value>& values, Predicate predicate) {
  return std::count_if(values.begin(), values.end(), predicate);
}

template <typename Value>
void expect_floating_point_kinds(std::int32_t type) {
  const auto numbers = filled<Value>(type, Values::kNumbers);
  EXPECT_EQ(count(numbers, [](Value x) { return std::fabs(x) >= 0.125 && std::fabs(x) < 4; }),
            1000);
  EXPECT_GT(count(numbers, [](Value x) { return x < 0; }), 400);
  EXPECT_EQ(count(filled<Value>(type, Values::kPositiveNumbers), [](Value x) { return x > 0; }),
            1000);
  const auto zeros = filled<Value>(type, Values::kZeros);
  EXPECT_EQ(count(zeros, [](Value x) { return x == 0; }), 1000);
  EXPECT_GT(count(zeros, [](Value x) { return std::signbit(x); }), 400);
  const auto special = filled<Value>(type, Values::kSpecial);
  EXPECT_GT(count(special, [](Value x) { return std::isnan(x); }), 50);
  EXPECT_GT(count(special, [](Value x) { return std::isinf(x); }), 50);
  EXPECT_GT(count(special, [](Value x) { return x == 0; }), 50);
  EXPECT_GT(count(special, [](Value x) { return std::isnormal(x); }), 200);
  const auto subnormal = filled<Value>(type, Values::kSubnormal);
  EXPECT_GT(count(subnormal, [](Value x) { return std::fpclassify(x) == FP_SUBNORMAL; }), 300);
  EXPECT_GT(count(subnormal, [](Value x) { return std::isnormal(x); }), 300);
}

TEST(RandomValues, CoverTheKindsOfFloatingPointNumbers) {
  expect_floating_point_kinds<float>(CYXLA_F32);
  expect_floating_point_kinds<double>(CYXLA_F64);
  // A complex number is two of them.
  expect_floating_point_kinds<float>(CYXLA_C64);
  expect_floating_point_kinds<double>(CYXLA_C128);
}

TEST(RandomValues, KnowTheNarrowFormats) {
  // One is 0x3c00 as F16 and 0x3f80 as BF16; both have one in the middle of their range.
  for (const std::uint16_t bits : filled<std::uint16_t>(CYXLA_F16, Values::kPositiveNumbers)) {
    EXPECT_TRUE(bits >= 0x3000 && bits < 0x4400) << bits;
  }
  for (const std::uint16_t bits : filled<std::uint16_t>(CYXLA_BF16, Values::kPositiveNumbers)) {
    EXPECT_TRUE(bits >= 0x3e00 && bits < 0x4080) << bits;
  }
}

TEST(RandomValues, KeepIntegersSmall) {
  const auto numbers = filled<std::int32_t>(CYXLA_S32, Values::kNumbers);
  EXPECT_EQ(*std::min_element(numbers.begin(), numbers.end()), -2);
  EXPECT_EQ(*std::max_element(numbers.begin(), numbers.end()), 2);
  const auto special = filled<std::int64_t>(CYXLA_S64, Values::kSpecial);
  EXPECT_EQ(*std::min_element(special.begin(), special.end()), 0);
  EXPECT_EQ(*std::max_element(special.begin(), special.end()), 4);
  const auto natural = filled<std::uint8_t>(CYXLA_U8, Values::kNumbers);
  EXPECT_EQ(*std::max_element(natural.begin(), natural.end()), 4);
  const auto predicates = filled<std::uint8_t>(CYXLA_PRED, Values::kNumbers);
  EXPECT_EQ(*std::max_element(predicates.begin(), predicates.end()), 1);
  const auto zeros = filled<std::int16_t>(CYXLA_S16, Values::kZeros);
  EXPECT_EQ(count(zeros, [](int x) { return x != 0; }), 0);
}

TEST(RandomValues, StayInsideTheArrayForEveryType) {
  for (std::int32_t type = 0; type < 40; ++type) {
    std::vector<unsigned char> bytes(64, 0xee);
    fill(bytes.data(), 48, type, Values::kSpecial, 7);
    EXPECT_EQ(count(bytes, [](unsigned char x) { return x == 0xee; }), 16) << type;
  }
}

TEST(RandomValues, DependOnTheSeedAlone) {
  const auto first = filled<double>(CYXLA_F64, Values::kNumbers, 5);
  EXPECT_EQ(first, filled<double>(CYXLA_F64, Values::kNumbers, 5));
  EXPECT_NE(first, filled<double>(CYXLA_F64, Values::kNumbers, 6));
}

}  // namespace
}  // namespace cyxla::direct
