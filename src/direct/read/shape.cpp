// SPDX-License-Identifier: Apache-2.0
#include "direct/read/shape.h"

#include <string>

#include "base/wire.h"
#include "direct/read/message.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

std::vector<std::size_t> read_layout(std::string_view bytes) {
  std::vector<std::uint64_t> minor_to_major;
  Message message(bytes, "a layout");
  while (message.next()) {
    switch (message.field()) {
      case 1:  // minor_to_major
        message.repeated_numbers(minor_to_major);
        break;
      case 16:  // tail_padding_alignment_in_elements
        if (message.number() > 1) {
          message.refuse_value();
        }
        break;
      default:
        message.refuse_unknown();
    }
  }
  return {minor_to_major.begin(), minor_to_major.end()};
}

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
      throw Refusal("an array is larger than " + std::to_string(kMaxArrayBytes) + " bytes");
    }
    size_bytes *= dimension;
  }
  return size_bytes;
}

// `inside_tuple` ends the recursion: JAX makes no tuples of tuples.
Shape read(std::string_view bytes, bool inside_tuple) {
  Shape shape;
  bool has_layout = false;
  std::vector<std::uint64_t> dimensions;
  Message message(bytes, "a shape");
  while (message.next()) {
    switch (message.field()) {
      case 2:  // element_type
        shape.element_type = static_cast<ElementType>(message.number());
        break;
      case 3:  // dimensions
        message.repeated_numbers(dimensions);
        break;
      case 4:  // tuple_shapes
        if (inside_tuple) {
          throw Refusal("an array is in a tuple of tuples");
        }
        shape.elements.push_back(read(message.repeated_bytes(), true));
        break;
      case 5:  // layout
        has_layout = true;
        shape.minor_to_major = read_layout(message.bytes());
        break;
      case 6: {  // is_dynamic_dimension
        std::vector<std::uint64_t> dynamic;
        message.repeated_numbers(dynamic);
        for (const std::uint64_t is_dynamic : dynamic) {
          if (is_dynamic != 0) {
            throw Refusal("an array has a dynamic shape");
          }
        }
        break;
      }
      default:
        message.refuse_unknown();
    }
  }
  shape.dimensions.assign(dimensions.begin(), dimensions.end());
  if (shape.is_tuple()) {
    if (has_layout || !shape.dimensions.empty() || inside_tuple) {
      throw Refusal("a tuple has the shape of an array");
    }
    if (shape.elements.size() > kMaxArrayBytes / sizeof(void*)) {
      throw Refusal("a tuple has " + std::to_string(shape.elements.size()) + " elements");
    }
    shape.size_bytes = shape.elements.size() * sizeof(void*);
    return shape;
  }
  if (!has_layout || !shape.elements.empty() ||
      !is_permutation(shape.minor_to_major, shape.dimensions.size())) {
    throw Refusal("the layout of an array does not fit its shape");
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
  throw Refusal("an array has elements of type " +
                std::to_string(static_cast<std::uint64_t>(type)) + ", whose size is unknown");
}

Shape read_shape(std::string_view bytes) { return read(bytes, false); }

Extent read_extent(std::string_view bytes) {
  Extent extent;
  wire::Reader reader(bytes);
  while (auto field = reader.next()) {
    const bool is_bytes = field->type == wire::Type::kBytes;
    if (field->field == 2 && !is_bytes) {
      extent.element_type = static_cast<ElementType>(field->number);
    } else if (field->field == 3 && !is_bytes) {
      extent.dimensions.push_back(field->number);
    } else if (field->field == 3) {
      while (const auto size = wire::take_varint(field->bytes)) {
        extent.dimensions.push_back(*size);
      }
    }
  }
  extent.num_elements = extent.element_type == ElementType::kTuple ? 0 : 1;
  for (const std::size_t size : extent.dimensions) {
    extent.num_elements *= static_cast<double>(size);
  }
  return extent;
}

}  // namespace cyxla::direct
