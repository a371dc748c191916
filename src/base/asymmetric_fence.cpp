// SPDX-License-Identifier: Apache-2.0
#include "base/asymmetric_fence.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <chrono>
#include <thread>

namespace cyxla {
namespace {

// From <linux/membarrier.h>, which older systems lack.
constexpr int kPrivateExpedited = 1 << 3;
constexpr int kRegisterPrivateExpedited = 1 << 4;

bool membarrier([[maybe_unused]] int command) noexcept {
#if defined(__linux__) && defined(SYS_membarrier) && !defined(__SANITIZE_THREAD__)
  return syscall(SYS_membarrier, command, 0, 0) == 0;
#else
  return false;
#endif
}

}  // namespace

constinit std::atomic<bool> asymmetric_fence::light_is_real{true};

void prepare_asymmetric_fences() noexcept {
  asymmetric_fence::light_is_real.store(!membarrier(kRegisterPrivateExpedited),
                                        std::memory_order_seq_cst);
}

void heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (asymmetric_fence::light_is_real.load(std::memory_order_relaxed) ||
      membarrier(kPrivateExpedited)) {
    return;
  }
  // A sandbox entered later forbids membarrier. From now on the hot side uses real fences. Stores
  // by threads that just passed without one become visible well within this sleep.
  asymmetric_fence::light_is_real.store(true, std::memory_order_seq_cst);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace cyxla
