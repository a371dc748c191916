// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace cyxla::direct {

// Sets the floating-point state that XLA's CPU client gives to kernels, and restores the caller's
// at the end of the scope, exception flags included: subnormal operands and results become zero,
// rounding is to nearest, no exception traps. That is MXCSR alone; the x87 unit, which kernels do
// not use and XLA does not set either, stays as it is. Owned by the scope; used by one thread.
class FloatingPointScope {
 public:
#if defined(__SSE2__)
  FloatingPointScope() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(kKernelState); }
  ~FloatingPointScope() { _mm_setcsr(saved_); }
#else
  FloatingPointScope() noexcept = default;
#endif
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;

#if defined(__SSE2__)
 private:
  static constexpr unsigned kFlushSubnormalResults = 0x8000;
  static constexpr unsigned kZeroSubnormalOperands = 0x0040;
  static constexpr unsigned kMaskAllExceptions = 0x1f80;
  static constexpr unsigned kKernelState =
      kFlushSubnormalResults | kZeroSubnormalOperands | kMaskAllExceptions;

  unsigned saved_;
#endif
};

}  // namespace cyxla::direct
