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

// Arrays above this size gain nothing from a direct call: their arithmetic dwarfs the plugin's
// overhead, and the plugin has threads.
constexpr std::size_t kMaxArrayBytes = std::size_t{1} << 20;

// An array with its layout, or a tuple of arrays. Made by read_shape(), which checks it throughout.
struct Shape {
  ElementType element_type{};
  std::vector<std::size_t> dimensions;
  std::vector<std::size_t> minor_to_major;  // the dimensions, from the one that varies fastest
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

// What an estimate needs of a shape. Unlike Shape, of any size and layout.
struct Extent {
  ElementType element_type{};
  std::vector<std::size_t> dimensions;
  double num_elements = 0;  // of a tuple: 0, as whatever computes its arrays counts them
};

// Reads what is there of a ShapeProto, and ignores what is unknown.
Extent read_extent(std::string_view bytes);

// Refuses an element type that has no size of its own here.
std::size_t element_bytes(ElementType type);

// Reads a ShapeProto. Throws Refusal: dynamic dimensions, nested tuples, tiles, more than
// kMaxArrayBytes, or whatever else is not a plain array.
Shape read_shape(std::string_view bytes);

}  // namespace cyxla::direct
