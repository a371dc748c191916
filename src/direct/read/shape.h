// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cyxla::direct {

// Values of XLA's PrimitiveType.
enum class ElementType : std::uint64_t {
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kTuple = 13,
  kC64 = 15,
  kBF16 = 16,
  kC128 = 18,
};

// A direct call saves nothing for larger arrays: their arithmetic takes far longer than the
// plugin's overhead, and the plugin has threads.
constexpr std::size_t kMaxArrayBytes = std::size_t{1} << 20;

// An array with its layout, or a tuple of arrays, as read_shape() has checked it.
struct Shape {
  ElementType element_type{};
  std::vector<std::size_t> dimensions;
  std::vector<std::size_t> minor_to_major;  // the dimensions, the one that varies fastest first
  std::vector<Shape> elements;              // of a tuple
  std::size_t size_bytes = 0;               // of the array, or of the tuple's table of pointers

  bool is_tuple() const noexcept { return element_type == ElementType::kTuple; }
  bool is_row_major() const noexcept;
  // Bytes from one element to the next along each dimension.
  std::vector<std::size_t> strides() const;
  // The arrays of a tuple, or the array itself.
  std::vector<Shape> leaves() const;

  bool operator==(const Shape&) const = default;
};

// A shape for estimates. Unlike a Shape, it may have any size and layout.
struct Extent {
  ElementType element_type{};
  std::vector<std::size_t> dimensions;
  double num_elements = 0;  // 0 for a tuple: what computes its arrays counts them
};

// Reads a ShapeProto, and skips what it does not know.
Extent read_extent(std::string_view bytes);

// Throws Refusal for an unsupported type.
std::size_t element_bytes(ElementType type);

// Reads a ShapeProto. Throws Refusal for dynamic dimensions, nested tuples, tiles, and arrays of
// more than kMaxArrayBytes.
Shape read_shape(std::string_view bytes);

}  // namespace cyxla::direct
