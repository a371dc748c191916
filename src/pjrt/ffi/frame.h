// SPDX-License-Identifier: Apache-2.0
// The call frame of a handler's execute stage, declared like abi.h; the same in minor versions 2 to
// 5.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pjrt/ffi/abi.h"

namespace cyxla::pjrt::ffi {

inline constexpr int kExecuteStage = 3;
inline constexpr int kBufferArgument = 1;
inline constexpr int kScalarAttribute = 3;

// `dtype` is a value of XLA's PrimitiveType.
struct Buffer {
  std::size_t struct_size;
  InternalExtension* extension_start;
  int dtype;
  void* data;
  std::int64_t rank;
  const std::int64_t* dims;
};

struct Scalar {
  int dtype;
  const void* value;
};

// Used for both arguments and results.
struct Values {
  std::size_t struct_size;
  InternalExtension* extension_start;
  std::int64_t size;
  const int* types;
  void* const* values;
};

struct Attributes {
  std::size_t struct_size;
  InternalExtension* extension_start;
  std::int64_t size;
  const int* types;
  const ByteSpan* const* names;
  void* const* values;
};

struct ExecuteFrame {
  CallFrame start;
  Values arguments;
  Values results;
  Attributes attributes;
  void* future;
};

static_assert(offsetof(Buffer, dims) == 40);
static_assert(offsetof(ExecuteFrame, arguments) == 40);
static_assert(offsetof(ExecuteFrame, results) == 80);
static_assert(offsetof(ExecuteFrame, attributes) == 120);
static_assert(offsetof(ExecuteFrame, future) == 168);

}  // namespace cyxla::pjrt::ffi
