// SPDX-License-Identifier: Apache-2.0
// Fences for two sides, where one runs in every call and the other rarely:
//
//   hot side:   store flag;  light_fence();  load word
//   rare side:  store word;  heavy_fence();  load flag
//
// At least one side sees the other's store. Proof: heavy_fence() makes every running thread of the
// process execute a full fence (membarrier, private expedited), at some moment M of the hot
// thread's program order. The compiler keeps the hot side's two accesses in order. If M is after
// the hot store, that store is visible before the rare side loads the flag. Otherwise M is before
// the hot store and therefore before the hot load, which then sees the rare store, made before M.
// Where the system lacks membarrier, both fences are sequentially consistent.
#pragma once

#include <atomic>

namespace cyxla {

namespace asymmetric_fence {

// True when light_fence() must issue a CPU fence.
extern constinit std::atomic<bool> light_is_real;

}  // namespace asymmetric_fence

// Registers the process for heavy_fence(). Call it once, before the first light_fence() that pairs
// with a heavy_fence().
void prepare_asymmetric_fences() noexcept;

// Takes a few microseconds.
void heavy_fence() noexcept;

inline void light_fence() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (asymmetric_fence::light_is_real.load(std::memory_order_relaxed)) [[unlikely]] {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

}  // namespace cyxla
