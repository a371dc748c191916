// SPDX-License-Identifier: Apache-2.0
#include "direct/random_values.h"

#include <cyxla/cyxla.h>

#include <cstring>

#include "pjrt/element_type.h"

namespace cyxla::direct {
namespace {

// The generator splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t value = state_;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }
  std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }

 private:
  std::uint64_t state_;
};

// A binary floating-point format: sign, exponent, mantissa.
struct Format {
  unsigned exponent_bits;
  unsigned mantissa_bits;

  std::size_t size_bytes() const noexcept { return (1 + exponent_bits + mantissa_bits) / 8; }
  std::uint64_t exponent_mask() const noexcept { return (std::uint64_t{1} << exponent_bits) - 1; }
  std::uint64_t mantissa_mask() const noexcept { return (std::uint64_t{1} << mantissa_bits) - 1; }
  std::uint64_t number(bool negative, std::uint64_t exponent,
                       std::uint64_t mantissa) const noexcept {
    return (std::uint64_t{negative} << (exponent_bits + mantissa_bits)) |
           (exponent << mantissa_bits) | (mantissa & mantissa_mask());
  }
};

bool format_of(std::int32_t element_type, Format& format) noexcept {
  switch (element_type) {
    case CYXLA_F16:
      format = {5, 10};
      return true;
    case CYXLA_BF16:
      format = {8, 7};
      return true;
    case CYXLA_F32:
    case CYXLA_C64:
      format = {8, 23};
      return true;
    case CYXLA_F64:
    case CYXLA_C128:
      format = {11, 52};
      return true;
    default:
      return false;
  }
}

// Of the order of one: from 1/8 to 4.
std::uint64_t ordinary(const Format& format, bool negative, Random& random) noexcept {
  const std::uint64_t bias = format.exponent_mask() / 2;
  return format.number(negative, bias - 3 + random.below(5), random.next());
}

std::uint64_t special(const Format& format, bool negative, Random& random) noexcept {
  const std::uint64_t quiet = (format.mantissa_mask() + 1) / 2;
  switch (random.below(8)) {
    case 0:
      return format.number(negative, 0, 0);
    case 1:
      return format.number(negative, format.exponent_mask(), 0);
    case 2:
      return format.number(negative, format.exponent_mask(), quiet);
    case 3:
      return format.number(negative, format.exponent_mask() - 1, random.next());
    case 4:
      return format.number(negative, 1, random.next());
    default:
      return ordinary(format, negative, random);
  }
}

std::uint64_t subnormal(const Format& format, bool negative, Random& random) noexcept {
  switch (random.below(4)) {
    case 0:
      return format.number(negative, 1, random.next());
    case 1:
      return ordinary(format, negative, random);
    default:
      return format.number(negative, 0, random.next());
  }
}

std::uint64_t floating_point(const Format& format, Values values, Random& random) noexcept {
  const bool negative = values != Values::kPositiveNumbers && random.below(2) != 0;
  switch (values) {
    case Values::kZeros:
      return format.number(negative, 0, 0);
    case Values::kSpecial:
      return special(format, negative, random);
    case Values::kSubnormal:
      return subnormal(format, negative, random);
    default:
      return ordinary(format, negative, random);
  }
}

bool is_signed_integer(std::int32_t element_type) noexcept {
  return element_type >= CYXLA_S8 && element_type <= CYXLA_S64;
}

std::uint64_t integer(std::int32_t element_type, Values values, Random& random) noexcept {
  if (values == Values::kZeros) {
    return 0;
  }
  if (element_type == CYXLA_PRED) {
    return random.below(2);
  }
  const std::uint64_t value = random.below(5);
  return is_signed_integer(element_type) && values == Values::kNumbers ? value - 2 : value;
}

}  // namespace

void fill(void* data, std::size_t size_bytes, std::int32_t element_type, Values values,
          std::uint64_t seed) noexcept {
  Random random(seed);
  Format format = {};
  const bool is_floating_point = format_of(element_type, format);
  std::size_t step = pjrt::itemsize(element_type);
  if (is_floating_point) {
    step = format.size_bytes();  // half of a complex number's
  } else if (element_type < CYXLA_PRED || element_type > CYXLA_U64) {
    step = 1;
  }
  for (std::size_t i = 0; i + step <= size_bytes; i += step) {
    const std::uint64_t value = is_floating_point ? floating_point(format, values, random)
                                                  : integer(element_type, values, random);
    // The lowest bytes come first on every machine that has this route.
    std::memcpy(static_cast<std::byte*>(data) + i, &value, step);
  }
}

}  // namespace cyxla::direct
