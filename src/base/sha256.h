// SPDX-License-Identifier: Apache-2.0
// SHA-256, as FIPS 180-4 defines it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cyxla {

using Sha256Digest = std::array<std::uint8_t, 32>;

// Hashes a message given in parts. One thread at a time.
class Sha256 {
 public:
  void update(std::string_view bytes) noexcept;
  // Returns the digest of everything so far; do not call update() afterwards.
  Sha256Digest finish() noexcept;

 private:
  static constexpr std::size_t kBlockSize = 64;

  void process(const std::uint8_t* block) noexcept;

  // The first 32 bits of the fractional parts of the square roots of the first eight primes.
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, kBlockSize> block_ = {};
  std::uint64_t size_bytes_ = 0;
};

}  // namespace cyxla
