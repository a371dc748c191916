// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "direct/plan.h"
#include "direct/read/buffers.h"
#include "direct/read/shape.h"

namespace cyxla::direct {

// A slice with the type or the shape of its values.
struct TypedSlice {
  Slice slice;
  ElementType element_type{};
};

struct ShapedSlice {
  Slice slice;
  Shape shape;
};

// Each throws Refusal where the slice leaves its allocation or contradicts its own shape.

// A BufferAllocationSliceProto.
TypedSlice read_slice(std::string_view bytes, const Buffers& buffers);
// A ShapeBufferAllocationSliceProto.
ShapedSlice read_shaped_slice(std::string_view bytes, const Buffers& buffers);
// An argument or result of a kernel: a BufferAllocationSliceProto in PJRT 0.81, a ShapedSliceProto
// in newer plugins.
Slice read_kernel_slice(std::string_view bytes, const Buffers& buffers);

}  // namespace cyxla::direct
