// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_memory.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace cyxla {

void* allocate_aligned(std::size_t size_bytes) noexcept {
  if (size_bytes > std::numeric_limits<std::size_t>::max() - kAlignment) {
    return nullptr;
  }
  const std::size_t units = size_bytes == 0 ? 1 : (size_bytes + kAlignment - 1) / kAlignment;
  return std::aligned_alloc(kAlignment, units * kAlignment);
}

void free_aligned(void* pointer) noexcept { std::free(pointer); }

AlignedMemory make_aligned(std::size_t size_bytes) {
  AlignedMemory memory(allocate_aligned(size_bytes));
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace cyxla
