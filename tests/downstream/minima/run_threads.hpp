// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

// Calls work(0, context) to work(count - 1, context), each on a thread of its own, and waits for
// all of them.
inline void run_threads(std::size_t count, void (*work)(std::size_t, void*), void* context) {
  std::vector<std::jthread> threads;
  threads.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    threads.emplace_back(work, index, context);
  }
}
