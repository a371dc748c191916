// SPDX-License-Identifier: Apache-2.0
#include "direct/read/shape.h"

#include <string>

#include "direct/read/tables.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

bool is_permutation(const std::vector<std::size_t>& order, std::size_t size) {
  std::vector<bool> seen(size);
  for (const std::size_t dimension : order) {
    if (dimension >= size || seen[dimension]) {
      return false;
    }
    seen[dimension] = true;
  }
  return order.size() == size;
}

std::size_t array_bytes(const Shape& shape) {
  std::size_t size_bytes = element_bytes(shape.element_type);
  for (const std::size_t dimension : shape.dimensions) {
    if (dimension == 0) {
      return 0;
    }
  }
  for (const std::size_t dimension : shape.dimensions) {
    if (dimension > kMaxArrayBytes / size_bytes) {
      throw Refusal(Reason::kTooLarge,
                    "an array is larger than " + std::to_string(kMaxArrayBytes) + " bytes");
    }
    size_bytes *= dimension;
  }
  return size_bytes;
}

std::vector<std::size_t> read_layout(std::string_view bytes) {
  const Message<proto::kLayout> layout(bytes, "a layout");
  const std::uint64_t padding = layout.number("tail_padding_alignment_in_elements");
  if (padding > 1) {
    throw Refusal(Reason::kUnsupportedField,
                  "a layout pads to a multiple of " + std::to_string(padding) + " elements");
  }
  const std::vector<std::uint64_t> order = layout.numbers("minor_to_major");
  return {order.begin(), order.end()};
}

// `inside_tuple` ends the recursion: JAX makes no tuples of tuples.
Shape read(std::string_view bytes, bool inside_tuple) {
  const Message<proto::kShape> message(bytes, "a shape");
  const std::vector<std::uint64_t> sizes = message.numbers("dimensions");
  Shape shape{.element_type = static_cast<ElementType>(message.number("element_type")),
              .dimensions = {sizes.begin(), sizes.end()},
              .minor_to_major = read_layout(message.bytes("layout"))};
  if (inside_tuple && (shape.is_tuple() || message.has("tuple_shapes"))) {
    throw Refusal(Reason::kUnsupportedType, "an array is in a tuple of tuples");
  }
  message.for_each("tuple_shapes",
                   [&](std::string_view one) { shape.elements.push_back(read(one, true)); });
  if (shape.is_tuple()) {
    if (message.has("layout") || !shape.dimensions.empty()) {
      throw Refusal(Reason::kMalformed, "a tuple has the shape of an array");
    }
    if (shape.elements.size() > kMaxArrayBytes / sizeof(void*)) {
      throw Refusal(Reason::kTooLarge,
                    "a tuple has " + std::to_string(shape.elements.size()) + " elements");
    }
    shape.size_bytes = shape.elements.size() * sizeof(void*);
    return shape;
  }
  if (!message.has("layout") || !shape.elements.empty() ||
      !is_permutation(shape.minor_to_major, shape.dimensions.size())) {
    throw Refusal(Reason::kBufferLayout, "the layout of an array does not fit its shape");
  }
  shape.size_bytes = array_bytes(shape);
  return shape;
}

}  // namespace

bool Shape::is_row_major() const noexcept {
  for (std::size_t i = 0; i < minor_to_major.size(); ++i) {
    if (minor_to_major[i] != minor_to_major.size() - 1 - i) {
      return false;
    }
  }
  return !is_tuple();
}

std::vector<std::size_t> Shape::strides() const {
  std::vector<std::size_t> strides(dimensions.size());
  std::size_t stride = element_bytes(element_type);
  for (const std::size_t dimension : minor_to_major) {
    strides[dimension] = stride;
    // An empty array has no elements to step over, and its other dimensions no bound.
    stride = size_bytes == 0 ? 0 : stride * dimensions[dimension];
  }
  return strides;
}

std::vector<Shape> Shape::leaves() const {
  return is_tuple() ? elements : std::vector<Shape>{*this};
}

std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kPred:
    case ElementType::kS8:
    case ElementType::kU8:
      return 1;
    case ElementType::kS16:
    case ElementType::kU16:
    case ElementType::kF16:
    case ElementType::kBF16:
      return 2;
    case ElementType::kS32:
    case ElementType::kU32:
    case ElementType::kF32:
      return 4;
    case ElementType::kS64:
    case ElementType::kU64:
    case ElementType::kF64:
    case ElementType::kC64:
      return 8;
    case ElementType::kC128:
      return 16;
    case ElementType::kTuple:
      break;
  }
  throw Refusal(Reason::kUnsupportedType, "an array has elements of type " +
                                              std::to_string(static_cast<std::uint64_t>(type)) +
                                              ", which cyxla does not support");
}

Shape read_shape(std::string_view bytes) { return read(bytes, false); }

Extent read_extent(std::string_view bytes) {
  const Message<proto::kShape> shape(bytes, Lenient());
  const std::vector<std::uint64_t> sizes = shape.numbers("dimensions");
  Extent extent{.element_type = static_cast<ElementType>(shape.number("element_type")),
                .dimensions = {sizes.begin(), sizes.end()}};
  extent.num_elements = extent.element_type == ElementType::kTuple ? 0 : 1;
  for (const std::size_t size : extent.dimensions) {
    extent.num_elements *= static_cast<double>(size);
  }
  return extent;
}

}  // namespace cyxla::direct
