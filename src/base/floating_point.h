// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#include <cstdint>
#else
#include <cfenv>
#endif

namespace cyxla {

// Sets the floating-point state that XLA's CPU client gives to kernels, and restores the caller's
// state at the end of the scope, exception flags included: subnormal operands and results become
// zero, rounding is to nearest, exceptions do not trap. Only MXCSR changes: kernels do not use the
// x87 unit, and XLA does not set it. Owned by the scope; used by one thread.
class [[nodiscard]] KernelFloatingPointScope {
 public:
#if defined(__x86_64__)
  KernelFloatingPointScope() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(kKernelState); }
  ~KernelFloatingPointScope() { _mm_setcsr(saved_); }
#else
  KernelFloatingPointScope() noexcept = default;
#endif
  KernelFloatingPointScope(const KernelFloatingPointScope&) = delete;
  KernelFloatingPointScope& operator=(const KernelFloatingPointScope&) = delete;

#if defined(__x86_64__)
 private:
  static constexpr unsigned kFlushSubnormalResults = 0x8000;
  static constexpr unsigned kZeroSubnormalOperands = 0x0040;
  static constexpr unsigned kMaskAllExceptions = 0x1f80;
  static constexpr unsigned kKernelState =
      kFlushSubnormalResults | kZeroSubnormalOperands | kMaskAllExceptions;

  unsigned saved_;
#endif
};

// Gives a plugin the floating-point state that a program starts with, and restores the caller's
// state at the end of the scope, exception flags included. Without it, the caller's rounding mode
// would change what the plugin computes and compiles, the caller's traps would end the process, and
// the plugin's exception flags would remain set. Threads that the plugin starts inherit the state.
// Owned by the scope; used by one thread.
class [[nodiscard]] PluginFloatingPointScope {
 public:
#if defined(__x86_64__)
  PluginFloatingPointScope() noexcept : mxcsr_(_mm_getcsr()), x87_(x87_now()) {
    if (x87_.control != kX87Default) {
      set_x87_control(kX87Default);
    }
    _mm_setcsr(kMxcsrDefault);
  }
  ~PluginFloatingPointScope() {
    const X87 now = x87_now();
    if (now.control != x87_.control || ((now.status ^ x87_.status) & kX87Exceptions) != 0) {
      restore_x87();
    }
    _mm_setcsr(mxcsr_);
  }
#else
  PluginFloatingPointScope() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~PluginFloatingPointScope() { std::fesetenv(&saved_); }
#endif
  PluginFloatingPointScope(const PluginFloatingPointScope&) = delete;
  PluginFloatingPointScope& operator=(const PluginFloatingPointScope&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kMxcsrDefault = 0x1f80;
  static constexpr std::uint16_t kX87Default = 0x037f;
  static constexpr unsigned kX87Exceptions = 0x3f;

  struct X87 {
    std::uint16_t control;
    std::uint16_t status;
  };

  static X87 x87_now() noexcept {
    std::uint16_t control = 0;  // two variables, because reading one merged word would stall
    std::uint16_t status = 0;
    asm volatile("fnstcw %0\n\tfnstsw %1" : "=m"(control), "=a"(status));
    return {control, status};
  }

  // Unmasking an exception whose flag is already set does not trap here but in the next x87
  // instruction, as it would have without the scope.
  static void set_x87_control(std::uint16_t control) noexcept {
    asm volatile("fldcw %0" : : "m"(control));
  }

  // The status word can only be loaded together with the unit's whole environment.
  void restore_x87() const noexcept {
    struct {
      std::uint32_t control, status, others[5];
    } environment;
    asm volatile("fnstenv %0" : "=m"(environment));
    environment.control = (environment.control & 0xffff0000U) | x87_.control;
    environment.status = (environment.status & ~kX87Exceptions) | (x87_.status & kX87Exceptions);
    asm volatile("fldenv %0" : : "m"(environment));
  }

  unsigned mxcsr_;
  X87 x87_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace cyxla
