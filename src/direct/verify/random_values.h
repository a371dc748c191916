// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla::direct {

enum class Values : std::uint8_t { kNumbers, kPositiveNumbers, kZeros, kSpecial, kSubnormal };

// Fills an array with values of a kind, the same for the same seed. Integers are small and, but for
// kNumbers, not negative, as they may be indices or counts. kNumbers are of either sign and of the
// order of one; kSpecial has zeros of both signs, infinite numbers, NaN, huge and tiny ones among
// them; kSubnormal has subnormal numbers and such that become subnormal. Types that are neither
// integers nor one of the IEEE or bfloat16 formats get small bytes.
void fill(void* data, std::size_t size_bytes, std::int32_t element_type, Values values,
          std::uint64_t seed) noexcept;

// How many inputs fill_varied() can make for conditionals of that many branches.
inline constexpr std::size_t kMaxVariations = 60;

// Fills an array with values that lead a program along other ways than those of fill(): in the
// first `num_branches` variations every number is the variation's own, so 0, 1, 2. In the others
// each array has at random equal, ascending, descending or mixed elements, positive or negative,
// whole or not, small or large. Integers are at most 100,000, as they may be trip counts. The same
// for the same variation and seed.
void fill_varied(void* data, std::size_t size_bytes, std::int32_t element_type,
                 std::size_t variation, std::size_t num_branches, std::uint64_t seed) noexcept;

}  // namespace cyxla::direct
