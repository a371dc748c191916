// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace cyxla::runtime {

inline constexpr std::size_t kNoThreadSlot = static_cast<std::size_t>(-1);

// Returns the calling thread's slot, a small number that is unique among living threads. The next
// thread reuses the slot of one that ended, so tables indexed by slot stay as short as the largest
// number of threads alive at once. Returns kNoThreadSlot when memory ran out, or when the thread
// has already returned its slot.
std::size_t thread_slot() noexcept;

// Frees the calling thread's slot, if it has one.
void return_thread_slot() noexcept;

}  // namespace cyxla::runtime
