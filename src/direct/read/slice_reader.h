// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "direct/plan.h"
#include "direct/read/buffers.h"
#include "direct/read/shape.h"

namespace cyxla::direct {

// A slice with what is known of the values in it.
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
// A ShapeBufferAllocationSliceProto, which holds its shape before its slice.
ShapedSlice read_shaped_slice(std::string_view bytes, const Buffers& buffers);
// An argument or result of a kernel: the former in PJRT 0.81 and, with the two fields exchanged,
// the latter in newer plugins.
Slice read_kernel_slice(std::string_view bytes, const Buffers& buffers);

}  // namespace cyxla::direct
