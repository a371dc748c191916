// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

namespace cyxla::direct {

// Like memmove, but without a call for up to 64 bytes: for arrays of a few numbers, a call costs as
// much as the arithmetic.
inline void copy_bytes(void* destination, const void* source, std::size_t size_bytes) noexcept {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  // The two pieces may overlap, so both are read before the first write.
  const auto copy_ends = [=](auto piece) {
    auto first = piece;
    auto last = piece;
    std::memcpy(&first, from, sizeof(piece));
    std::memcpy(&last, from + size_bytes - sizeof(piece), sizeof(piece));
    std::memcpy(to, &first, sizeof(piece));
    std::memcpy(to + size_bytes - sizeof(piece), &last, sizeof(piece));
  };
  if (size_bytes > 64) {
    std::memmove(to, from, size_bytes);
  } else if (size_bytes >= 32) {
    copy_ends(std::array<std::byte, 32>{});
  } else if (size_bytes >= 16) {
    copy_ends(std::array<std::byte, 16>{});
  } else if (size_bytes >= 8) {
    copy_ends(std::array<std::byte, 8>{});
  } else if (size_bytes >= 4) {
    copy_ends(std::array<std::byte, 4>{});
  } else if (size_bytes >= 2) {
    copy_ends(std::array<std::byte, 2>{});
  } else if (size_bytes == 1) {
    *to = *from;
  }
}

}  // namespace cyxla::direct
