// SPDX-License-Identifier: Apache-2.0
#include "direct/verify/random_values.h"

#include <cyxla/cyxla.h>

#include <algorithm>
#include <bit>
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

// From 1/8 to 4.
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

// The pattern of one array of a variation.
struct Pattern {
  enum class Order : std::uint8_t { kEqual, kAscending, kDescending, kMixed };
  Order order = Order::kEqual;
  bool is_whole = true;
  bool is_negative = false;
  bool has_both_signs = false;
  std::uint64_t whole = 0;  // the value of equal elements, the bound of mixed ones
  int exponent = 0;         // of elements that are not whole
};

template <typename Value, std::size_t size>
Value one_of(const Value (&values)[size], Random& random) noexcept {
  return values[random.below(size)];
}

Pattern pattern_of(std::size_t variation, std::size_t num_branches, Random& random) noexcept {
  using Order = Pattern::Order;
  if (variation < num_branches) {
    return {.whole = variation};
  }
  constexpr std::uint64_t kBounds[] = {2, 5, 20, 100, 1000, 100'000};
  constexpr int kExponents[] = {0, 0, 0, -3, -10, 2, 4, 7, 10, 20, 40, 100};
  Pattern pattern;
  pattern.order = one_of(
      {Order::kEqual, Order::kAscending, Order::kDescending, Order::kMixed, Order::kMixed}, random);
  pattern.is_whole = random.below(3) == 0;
  pattern.is_negative = random.below(3) == 0;
  pattern.has_both_signs = !pattern.is_negative && random.below(3) == 0;
  const std::uint64_t bound = random.below(2) == 0 ? num_branches : one_of(kBounds, random);
  pattern.whole = pattern.order == Order::kEqual ? random.below(bound) : bound;
  pattern.exponent = one_of(kExponents, random);
  return pattern;
}

// The bits of a whole number, rounded toward zero.
std::uint64_t whole_number(const Format& format, bool negative, std::uint64_t value) noexcept {
  if (value == 0) {
    return format.number(negative, 0, 0);
  }
  const auto exponent = static_cast<unsigned>(std::bit_width(value)) - 1;
  const std::uint64_t biased = format.exponent_mask() / 2 + exponent;
  const std::uint64_t mantissa = exponent <= format.mantissa_bits
                                     ? value << (format.mantissa_bits - exponent)
                                     : value >> (exponent - format.mantissa_bits);
  // The largest number of F16 is 65504.
  return biased < format.exponent_mask() ? format.number(negative, biased, mantissa)
                                         : format.number(negative, format.exponent_mask() - 1, 0);
}

// Makes the elements of one array, in order.
class VariedElements {
 public:
  VariedElements(const Pattern& pattern, std::size_t count, Random& random) noexcept
      : pattern_(pattern), count_(count), random_(random), fraction_(random.next() >> 1) {}

  std::uint64_t floating_point(const Format& format) noexcept {
    const std::uint64_t position = next_position();
    const bool negative = is_next_negative();
    if (pattern_.is_whole) {
      return whole_number(format, negative, whole(position));
    }
    const int bias = static_cast<int>(format.exponent_mask() / 2);
    const int exponent = std::clamp(bias + pattern_.exponent, 2, 2 * bias - 6);
    const auto first = static_cast<std::uint64_t>(exponent) << format.mantissa_bits;
    // Four octaves above `first`. Larger bits are larger numbers.
    const std::uint64_t range = std::uint64_t{4} << format.mantissa_bits;
    std::uint64_t above = fraction_ % range;
    if (pattern_.order == Pattern::Order::kMixed) {
      above = random_.below(range);
    } else if (pattern_.order != Pattern::Order::kEqual) {
      above = range / std::max<std::uint64_t>(count_, 1) * position;
    }
    return format.number(negative, 0, 0) | (first + above);
  }

  std::uint64_t integer(std::int32_t element_type) noexcept {
    const std::uint64_t value = whole(next_position());
    if (element_type == CYXLA_PRED) {
      return value & 1;
    }
    // Larger values do not fit in a signed byte.
    const std::uint64_t small = pjrt::itemsize(element_type) == 1 ? value % 100 : value;
    return is_signed_integer(element_type) && is_next_negative() ? 0 - small : small;
  }

 private:
  std::uint64_t next_position() noexcept {
    const std::uint64_t position = next_++;
    return pattern_.order == Pattern::Order::kDescending ? count_ - 1 - position : position;
  }
  bool is_next_negative() noexcept {
    return pattern_.is_negative || (pattern_.has_both_signs && random_.below(2) != 0);
  }
  std::uint64_t whole(std::uint64_t position) noexcept {
    switch (pattern_.order) {
      case Pattern::Order::kEqual:
        return pattern_.whole;
      case Pattern::Order::kMixed:
        return random_.below(std::max<std::uint64_t>(pattern_.whole, 1));
      default:
        return position;
    }
  }

  const Pattern& pattern_;
  std::size_t count_;
  Random& random_;
  std::uint64_t fraction_;
  std::uint64_t next_ = 0;
};

// Calls `element` for each element, or half of a complex one, and stores its lowest bytes.
template <typename Element>
void fill_elements(void* data, std::size_t size_bytes, std::size_t step, Element element) noexcept {
  for (std::size_t i = 0; i + step <= size_bytes; i += step) {
    const std::uint64_t value = element();
    // Every machine with a direct route is little-endian.
    std::memcpy(static_cast<std::byte*>(data) + i, &value, step);
  }
}

struct Elements {
  Format format = {};
  bool is_floating_point = false;
  std::size_t size_bytes = 1;  // of one element, or of half of a complex one
};

Elements elements_of(std::int32_t element_type) noexcept {
  Elements elements;
  elements.is_floating_point = format_of(element_type, elements.format);
  if (elements.is_floating_point) {
    elements.size_bytes = elements.format.size_bytes();
  } else if (element_type >= CYXLA_PRED && element_type <= CYXLA_U64) {
    elements.size_bytes = pjrt::itemsize(element_type);
  }
  return elements;
}

}  // namespace

void fill(void* data, std::size_t size_bytes, std::int32_t element_type, Values values,
          std::uint64_t seed) noexcept {
  Random random(seed);
  const Elements elements = elements_of(element_type);
  fill_elements(data, size_bytes, elements.size_bytes, [&] {
    return elements.is_floating_point ? floating_point(elements.format, values, random)
                                      : integer(element_type, values, random);
  });
}

void fill_varied(void* data, std::size_t size_bytes, std::int32_t element_type,
                 std::size_t variation, std::size_t num_branches, std::uint64_t seed) noexcept {
  Random random(seed);
  const Elements elements = elements_of(element_type);
  const Pattern pattern = pattern_of(variation, num_branches, random);
  VariedElements varied(pattern, size_bytes / elements.size_bytes, random);
  fill_elements(data, size_bytes, elements.size_bytes, [&] {
    return elements.is_floating_point ? varied.floating_point(elements.format)
                                      : varied.integer(element_type);
  });
}

}  // namespace cyxla::direct
