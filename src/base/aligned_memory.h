// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cyxla {

inline constexpr std::size_t kAlignment = CYXLA_ALIGNMENT;

// Returns `size_bytes` bytes (at least one, so the address is never null) at a kAlignment-aligned
// address, or null when memory runs out.
[[nodiscard]] void* allocate_aligned(std::size_t size_bytes) noexcept;
void free_aligned(void* pointer) noexcept;

struct AlignedDeleter {
  void operator()(void* pointer) const noexcept { free_aligned(pointer); }
};
using AlignedMemory = std::unique_ptr<void, AlignedDeleter>;

// As allocate_aligned, but owned. Throws std::bad_alloc.
[[nodiscard]] AlignedMemory make_aligned(std::size_t size_bytes);

inline bool is_aligned(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) % kAlignment == 0;
}

}  // namespace cyxla
