// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>

namespace cyxla::soak {

// The process's memory: resident pages, and bytes allocated by malloc.
struct Memory {
  std::int64_t resident_bytes = 0;
  std::int64_t allocated_bytes = 0;

  static Memory now() {
    malloc_trim(0);  // freed memory that malloc keeps is not growth
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;
    const struct mallinfo2 info = mallinfo2();
    return {pages * sysconf(_SC_PAGESIZE), static_cast<std::int64_t>(info.uordblks + info.hblkhd)};
  }
};

// Keeps 100 bytes forever: the leak that the options --leak-... plant.
inline void* volatile newest_leak = nullptr;
inline void leak() {
  auto* block = static_cast<char*>(malloc(100));
  block[0] = 1;
  newest_leak = block;
}

}  // namespace cyxla::soak
