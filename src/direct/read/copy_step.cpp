// SPDX-License-Identifier: Apache-2.0
#include "direct/read/copy_step.h"

#include <vector>

#include "direct/read/slice_reader.h"
#include "direct/read/tables.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

bool overlap(const Slice& a, const Slice& b) {
  return a.allocation == b.allocation && a.offset < b.offset + b.size_bytes &&
         b.offset < a.offset + a.size_bytes;
}

// The destination's slowest dimension comes first, so that it is written in ascending order.
std::vector<CopyStep::Dimension> loop_over(const Shape& source, const Shape& destination) {
  const std::vector<std::size_t> source_strides = source.strides();
  const std::vector<std::size_t> destination_strides = destination.strides();
  std::vector<CopyStep::Dimension> dimensions;
  for (auto i = destination.minor_to_major.rbegin(); i != destination.minor_to_major.rend(); ++i) {
    if (destination.dimensions[*i] != 1) {
      dimensions.push_back(
          {destination.dimensions[*i], source_strides[*i], destination_strides[*i]});
    }
  }
  return dimensions;
}

}  // namespace

std::optional<CopyStep> read_copy(std::string_view bytes, const Buffers& buffers) {
  const Message<proto::kCopyThunk> message(bytes, "a copy step");
  const ShapedSlice source = read_shaped_slice(message.bytes("src_buffer_shape"), buffers);
  const ShapedSlice destination = read_shaped_slice(message.bytes("dst_buffer_shape"), buffers);
  if (source.shape.is_tuple() || source.shape.element_type != destination.shape.element_type ||
      source.shape.dimensions != destination.shape.dimensions) {
    throw Refusal(Reason::kMalformed, "a copy step copies between arrays of different shapes");
  }
  const Allocation& written = buffers.allocations[destination.slice.allocation];
  if (written.kind == Allocation::Kind::kInput || written.kind == Allocation::Kind::kConstant) {
    throw Refusal(Reason::kMalformed, "a copy step writes to an input or a constant");
  }
  CopyStep step{.source = source.slice, .destination = destination.slice};
  const bool is_plain = source.shape.minor_to_major == destination.shape.minor_to_major;
  if (overlap(step.source, step.destination)) {
    if (is_plain && step.source.offset == step.destination.offset) {
      return std::nullopt;
    }
    throw Refusal(Reason::kBufferLayout, "a copy step copies between arrays that overlap");
  }
  step.element_bytes = element_bytes(source.shape.element_type);
  if (!is_plain && source.shape.size_bytes != 0) {
    step.dimensions = loop_over(source.shape, destination.shape);
  }
  return step;
}

}  // namespace cyxla::direct
