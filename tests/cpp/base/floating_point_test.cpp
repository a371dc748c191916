// SPDX-License-Identifier: Apache-2.0
#include "base/floating_point.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>
#include <limits>

namespace cyxla {
namespace {

#if defined(__x86_64__)

constexpr unsigned kFlags = 0x3f;

std::uint16_t x87_control() {
  std::uint16_t word = 0;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}

std::uint16_t x87_status() {
  std::uint16_t word = 0;
  asm volatile("fnstsw %0" : "=m"(word));
  return word;
}

void set_x87_control(std::uint16_t word) { asm volatile("fldcw %0" : : "m"(word)); }

void divide_by_zero_on_x87() {
  volatile long double zero = 0;
  volatile long double result = 1 / zero;
  static_cast<void>(result);
}

// Saves the calling thread's whole floating-point state and restores it at the end of the test.
class StateGuard {
 public:
  StateGuard() { std::fegetenv(&saved_); }
  ~StateGuard() { std::fesetenv(&saved_); }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  std::fenv_t saved_ = {};
};

// Keeps the compiler from evaluating the product.
double multiply(double a, double b) {
  volatile double first = a;
  volatile double second = b;
  return first * second;
}

TEST(KernelFloatingPointScope, FlushesSubnormalNumbersInsideOnly) {
  const double subnormal = std::numeric_limits<double>::min() / 4;
  {
    const KernelFloatingPointScope scope;
    EXPECT_EQ(multiply(subnormal, 1e300), 0);                          // an operand
    EXPECT_EQ(multiply(std::numeric_limits<double>::min(), 0.25), 0);  // a result
  }
  EXPECT_NE(multiply(subnormal, 1e300), 0);
  EXPECT_EQ(multiply(std::numeric_limits<double>::min(), 0.25), subnormal);
}

TEST(KernelFloatingPointScope, RoundsToNearestAndMasksAllExceptions) {
  const unsigned before = _mm_getcsr();
  // Upward rounding, division by zero traps.
  const unsigned unusual = (before & ~0x6200U & ~kFlags) | 0x4000U;
  _mm_setcsr(unusual);
  unsigned inside = 0;
  {
    const KernelFloatingPointScope scope;
    inside = _mm_getcsr();
    multiply(std::numeric_limits<double>::infinity(), 0);
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(inside, 0x9fc0U);
  EXPECT_EQ(after, unusual);
}

TEST(KernelFloatingPointScope, LeavesTheX87UnitAlone) {
  const std::uint16_t before = x87_control();
  const KernelFloatingPointScope scope;
  EXPECT_EQ(x87_control(), before);
}

TEST(PluginFloatingPointScope, GivesTheStateOfANewProgramAndRestoresTheCallers) {
  const StateGuard guard;
  constexpr std::uint16_t kUpwardWithTraps = 0x0b70;
  set_x87_control(kUpwardWithTraps);
  // Upward rounding, one flag, division by zero traps, subnormal numbers become zero.
  constexpr unsigned kUnusual = 0xddc1;
  _mm_setcsr(kUnusual);
  unsigned inside = 0;
  std::uint16_t x87_inside = 0;
  {
    const PluginFloatingPointScope scope;
    inside = _mm_getcsr();
    x87_inside = x87_control();
    multiply(std::numeric_limits<double>::infinity(), 0);
    divide_by_zero_on_x87();
    std::fesetround(FE_DOWNWARD);
  }
  EXPECT_EQ(_mm_getcsr(), kUnusual);
  EXPECT_EQ(x87_control(), kUpwardWithTraps);
  EXPECT_EQ(x87_status() & kFlags, 0);
  EXPECT_EQ(inside, 0x1f80U);
  EXPECT_EQ(x87_inside, 0x037f);
}

TEST(PluginFloatingPointScope, KeepsTheFlagsOfTheCaller) {
  const StateGuard guard;
  std::feclearexcept(FE_ALL_EXCEPT);
  divide_by_zero_on_x87();
  multiply(1e300, 1e300);
  {
    const PluginFloatingPointScope scope;
    EXPECT_EQ(std::fetestexcept(FE_INVALID), 0);
    std::feraiseexcept(FE_INVALID);
  }
  EXPECT_EQ(std::fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), FE_DIVBYZERO | FE_OVERFLOW);
}

TEST(PluginFloatingPointScope, NothingTrapsInside) {
  const StateGuard guard;
  std::feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  {
    const PluginFloatingPointScope scope;
    multiply(std::numeric_limits<double>::infinity(), 0);
    divide_by_zero_on_x87();
  }
  EXPECT_EQ(fegetexcept(), FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  multiply(1, 2);  // a pending exception would trap now
  asm volatile("fwait");
}

#endif

}  // namespace
}  // namespace cyxla
