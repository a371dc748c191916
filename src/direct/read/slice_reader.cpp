// SPDX-License-Identifier: Apache-2.0
#include "direct/read/slice_reader.h"

#include <optional>
#include <string>

#include "base/wire.h"
#include "direct/read/message.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

ShapedSlice read_pair(std::string_view bytes, const Buffers& buffers, std::uint32_t shape_field,
                      std::uint32_t slice_field) {
  std::optional<Shape> shape;
  std::optional<TypedSlice> slice;
  Message message(bytes, "a slice with a shape");
  while (message.next()) {
    if (message.field() == shape_field) {
      shape = read_shape(message.bytes());
    } else if (message.field() == slice_field) {
      slice = read_slice(message.bytes(), buffers);
    } else {
      message.refuse_unknown();
    }
  }
  if (!shape || !slice || slice->slice.size_bytes != shape->size_bytes ||
      slice->element_type != shape->element_type) {
    throw Refusal("a slice does not fit the shape of its values");
  }
  return {slice->slice, *shape};
}

}  // namespace

TypedSlice read_slice(std::string_view bytes, const Buffers& buffers) {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t allocation = 0;
  ElementType element_type{};
  Message message(bytes, "a slice");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        offset = message.number();
        break;
      case 2:
        size_bytes = message.number();
        break;
      case 3:
        allocation = message.number();
        break;
      case 4:
        element_type = static_cast<ElementType>(message.number());
        break;
      default:
        message.refuse_unknown();
    }
  }
  return {buffers.slice(allocation, offset, size_bytes), element_type};
}

ShapedSlice read_shaped_slice(std::string_view bytes, const Buffers& buffers) {
  return read_pair(bytes, buffers, 1, 2);
}

Slice read_kernel_slice(std::string_view bytes, const Buffers& buffers) {
  wire::Reader reader(bytes);
  const auto first = reader.next();
  return first && first->type == wire::Type::kBytes ? read_pair(bytes, buffers, 2, 1).slice
                                                    : read_slice(bytes, buffers).slice;
}

}  // namespace cyxla::direct
