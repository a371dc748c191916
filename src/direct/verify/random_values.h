// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla::direct {

enum class Values : std::uint8_t { kNumbers, kPositiveNumbers, kZeros, kSpecial, kSubnormal };

// Fills an array with values of a kind. Equal seeds give equal values. Integers are small, because
// they may be indices or counts; only kNumbers has negative ones. kNumbers has numbers near one of
// both signs. kSpecial adds zeros of both signs, infinity, NaN, huge and tiny numbers. kSubnormal
// has subnormal numbers and numbers that become subnormal. Other types than integers, bfloat16 and
// the IEEE formats get small bytes.
void fill(void* data, std::size_t size_bytes, std::int32_t element_type, Values values,
          std::uint64_t seed) noexcept;

// The number of variations of fill_varied().
inline constexpr std::size_t kMaxVariations = 60;

// Fills an array with values that make a program take other branches than fill() does. In the first
// `num_branches` variations every number is the variation's own number: 0, 1, 2. In the others each
// array has random properties: equal, ascending, descending or mixed elements, positive or
// negative, whole or not, small or large. Integers are at most 100,000, because they may be trip
// counts. Equal variations and seeds give equal values.
void fill_varied(void* data, std::size_t size_bytes, std::int32_t element_type,
                 std::size_t variation, std::size_t num_branches, std::uint64_t seed) noexcept;

}  // namespace cyxla::direct
