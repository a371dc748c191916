// SPDX-License-Identifier: Apache-2.0
#include "direct/floating_point.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>

namespace cyxla::direct {
namespace {

#if defined(__SSE2__)

constexpr unsigned kFlags = 0x3f;

// Not computed while compiling.
double multiply(double a, double b) {
  volatile double first = a;
  volatile double second = b;
  return first * second;
}

TEST(FloatingPointScope, FlushesSubnormalNumbersInsideOnly) {
  const double subnormal = std::numeric_limits<double>::min() / 4;
  {
    const FloatingPointScope scope;
    EXPECT_EQ(multiply(subnormal, 1e300), 0);                          // an operand
    EXPECT_EQ(multiply(std::numeric_limits<double>::min(), 0.25), 0);  // a result
  }
  EXPECT_NE(multiply(subnormal, 1e300), 0);
  EXPECT_EQ(multiply(std::numeric_limits<double>::min(), 0.25), subnormal);
}

TEST(FloatingPointScope, RoundsToNearestAndMasksAllExceptions) {
  const unsigned before = _mm_getcsr();
  // Upward rounding, division by zero traps.
  const unsigned unusual = (before & ~0x6200U & ~kFlags) | 0x4000U;
  _mm_setcsr(unusual);
  unsigned inside = 0;
  {
    const FloatingPointScope scope;
    inside = _mm_getcsr();
    multiply(std::numeric_limits<double>::infinity(), 0);
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(inside, 0x9fc0U);
  EXPECT_EQ(after, unusual);
}

TEST(FloatingPointScope, LeavesTheX87UnitAlone) {
  const auto control_word = [] {
    unsigned short word = 0;
    asm volatile("fnstcw %0" : "=m"(word));
    return word;
  };
  const unsigned short before = control_word();
  const FloatingPointScope scope;
  EXPECT_EQ(control_word(), before);
}

#endif

}  // namespace
}  // namespace cyxla::direct
