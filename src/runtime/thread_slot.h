// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace cyxla::runtime {

inline constexpr std::size_t kNoThreadSlot = static_cast<std::size_t>(-1);

// A small number that no other living thread has; a thread that ends passes its number on. So
// tables indexed by it stay as short as the largest number of threads alive at once. kNoThreadSlot
// when memory ran out or the thread has passed it on already.
std::size_t thread_slot() noexcept;

// Passes the calling thread's slot on, if it has one.
void return_thread_slot() noexcept;

}  // namespace cyxla::runtime
