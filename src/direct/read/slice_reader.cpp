// SPDX-License-Identifier: Apache-2.0
#include "direct/read/slice_reader.h"

#include <utility>

#include "base/wire.h"
#include "direct/read/tables.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

template <const auto& table>
ShapedSlice read_pair(std::string_view bytes, const Buffers& buffers) {
  const Message<table> message(bytes, "a slice with a shape");
  Shape shape = read_shape(message.bytes("shape"));
  const TypedSlice slice = read_slice(message.bytes("slice"), buffers);
  if (slice.slice.size_bytes != shape.size_bytes || slice.element_type != shape.element_type) {
    throw Refusal(Reason::kMalformed, "a slice does not fit the shape of its values");
  }
  return {slice.slice, std::move(shape)};
}

}  // namespace

TypedSlice read_slice(std::string_view bytes, const Buffers& buffers) {
  const Message<proto::kBufferAllocationSlice> message(bytes, "a slice");
  return {buffers.slice(message.number("buffer_allocation_index"), message.number("offset"),
                        message.number("size")),
          static_cast<ElementType>(message.number("element_type"))};
}

ShapedSlice read_shaped_slice(std::string_view bytes, const Buffers& buffers) {
  return read_pair<proto::kShapeBufferAllocationSlice>(bytes, buffers);
}

Slice read_kernel_slice(std::string_view bytes, const Buffers& buffers) {
  wire::Reader reader(bytes);
  const auto first = reader.next();
  return first && first->type == wire::Type::kBytes
             ? read_pair<proto::kShapedSlice>(bytes, buffers).slice
             : read_slice(bytes, buffers).slice;
}

}  // namespace cyxla::direct
