// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/host_callback.h"

#include <atomic>
#include <cstdio>
#include <limits>
#include <string_view>

#include "pjrt/element_type.h"
#include "pjrt/ffi/frame.h"
#include "pjrt/ffi/metadata.h"
#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {
namespace {

// More than any program has; beyond these limits the frame does not match these declarations.
constexpr std::int64_t kMaxValues = 1 << 20;
constexpr std::int64_t kMaxCallbackRank = 64;
constexpr int kU64 = 9;

std::atomic<HostFunction> host_function{nullptr};

// Maps XLA's PrimitiveType; kNone for unknown types and those whose elements are not whole bytes.
constexpr int kNone = PJRT_Buffer_Type_INVALID;

int buffer_type(int primitive_type) noexcept {
  static constexpr std::array<int, 34> kTypes = [] {
    std::array<int, 34> types = {};
    types[1] = PJRT_Buffer_Type_PRED;
    types[2] = PJRT_Buffer_Type_S8;
    types[3] = PJRT_Buffer_Type_S16;
    types[4] = PJRT_Buffer_Type_S32;
    types[5] = PJRT_Buffer_Type_S64;
    types[6] = PJRT_Buffer_Type_U8;
    types[7] = PJRT_Buffer_Type_U16;
    types[8] = PJRT_Buffer_Type_U32;
    types[9] = PJRT_Buffer_Type_U64;
    types[10] = PJRT_Buffer_Type_F16;
    types[11] = PJRT_Buffer_Type_F32;
    types[12] = PJRT_Buffer_Type_F64;
    types[15] = PJRT_Buffer_Type_C64;
    types[16] = PJRT_Buffer_Type_BF16;
    types[17] = PJRT_Buffer_Type_TOKEN;
    types[18] = PJRT_Buffer_Type_C128;
    types[19] = PJRT_Buffer_Type_F8E5M2;
    types[20] = PJRT_Buffer_Type_F8E4M3FN;
    types[23] = PJRT_Buffer_Type_F8E4M3B11FNUZ;
    types[24] = PJRT_Buffer_Type_F8E5M2FNUZ;
    types[25] = PJRT_Buffer_Type_F8E4M3FNUZ;
    types[28] = PJRT_Buffer_Type_F8E4M3;
    types[29] = PJRT_Buffer_Type_F8E3M4;
    types[33] = PJRT_Buffer_Type_F8E8M0FNU;
    return types;
  }();
  const bool known = primitive_type >= 0 && primitive_type < static_cast<int>(kTypes.size());
  return known ? kTypes[static_cast<std::size_t>(primitive_type)] : kNone;
}

// Computes the array's size in bytes. Returns false when it is invalid or overflows.
bool measure(const ffi::Buffer& buffer, std::size_t& size_bytes) noexcept {
  size_bytes = itemsize(buffer_type(buffer.dtype));
  for (std::int64_t k = 0; k < buffer.rank; ++k) {
    const std::int64_t dimension = buffer.dims[k];
    if (dimension < 0) {
      return false;
    }
    const auto length = static_cast<std::size_t>(dimension);
    if (length != 0 && size_bytes > std::numeric_limits<std::size_t>::max() / length) {
      return false;
    }
    size_bytes *= length;
  }
  return true;
}

const char* check_values(const ffi::Values& values) noexcept {
  if (values.size < 0 || values.size > kMaxValues ||
      (values.size > 0 && (values.types == nullptr || values.values == nullptr))) {
    return "an invalid number of arrays";
  }
  for (std::int64_t i = 0; i < values.size; ++i) {
    const auto* buffer = static_cast<const ffi::Buffer*>(values.values[i]);
    if (values.types[i] != ffi::kBufferArgument || buffer == nullptr) {
      return "an argument or result that is not an array";
    }
    if (buffer->rank < 0 || buffer->rank > kMaxCallbackRank ||
        (buffer->rank > 0 && buffer->dims == nullptr)) {
      return "an array of an invalid rank";
    }
    if (buffer_type(buffer->dtype) == kNone) {
      return "an array whose elements are smaller than a byte, which NumPy does not support";
    }
    std::size_t size_bytes = 0;
    if (!measure(*buffer, size_bytes) || (size_bytes > 0 && buffer->data == nullptr)) {
      return "an array of an invalid size";
    }
  }
  return nullptr;
}

HostArray host_array(const ffi::Values& values, std::size_t i) noexcept {
  const auto& buffer = *static_cast<const ffi::Buffer*>(values.values[i]);
  HostArray array;
  array.data = buffer.data;
  array.element_type = buffer_type(buffer.dtype);
  array.dimensions = {buffer.dims, static_cast<std::size_t>(buffer.rank)};
  measure(buffer, array.size_bytes);
  return array;
}

const std::uint64_t* find_index(const ffi::Attributes& attributes) noexcept {
  if (attributes.types == nullptr || attributes.names == nullptr || attributes.values == nullptr) {
    return nullptr;
  }
  for (std::int64_t i = 0; i < attributes.size && i < kMaxValues; ++i) {
    const ffi::ByteSpan* const name = attributes.names[i];
    const auto* const scalar = static_cast<const ffi::Scalar*>(attributes.values[i]);
    if (name != nullptr && std::string_view(name->data, name->size) == "index" &&
        attributes.types[i] == ffi::kScalarAttribute && scalar != nullptr) {
      return scalar->dtype == kU64 ? static_cast<const std::uint64_t*>(scalar->value) : nullptr;
    }
  }
  return nullptr;
}

ffi::Error* make_error(const ffi::CallFrame& frame, const char* message) noexcept {
  return make_ffi_error(frame, ffi::kInternalError, message);
}

}  // namespace

const char* HostCall::read(const ffi::ExecuteFrame& frame) noexcept {
  if (const char* fault = check_values(frame.arguments); fault != nullptr) {
    return fault;
  }
  if (const char* fault = check_values(frame.results); fault != nullptr) {
    return fault;
  }
  const std::uint64_t* index = find_index(frame.attributes);
  if (index == nullptr) {
    return "no attribute `index`";
  }
  frame_ = &frame;
  function_ = *index;
  num_arguments_ = static_cast<std::size_t>(frame.arguments.size);
  num_results_ = static_cast<std::size_t>(frame.results.size);
  return nullptr;
}

HostArray HostCall::argument(std::size_t i) const noexcept {
  return host_array(frame_->arguments, i);
}

HostArray HostCall::result(std::size_t i) const noexcept { return host_array(frame_->results, i); }

void set_host_function(HostFunction function) noexcept {
  host_function.store(function, std::memory_order_release);
}

ffi::Error* host_callback_handler(ffi::CallFrame* frame) {
  if (const ffi::MetadataExtension* extension = metadata_extension(*frame)) {
    answer_metadata(*extension->metadata, {0, 1});  // plugins refuse 0.0
    return nullptr;
  }
  if (frame->stage != ffi::kExecuteStage) {
    return nullptr;
  }
  if (frame->struct_size < offsetof(ffi::ExecuteFrame, future)) {
    return make_error(*frame, "a host callback was given a call frame of another FFI version");
  }
  HostCallError error;
  error.front() = '\0';
  HostCall call;
  if (const char* fault = call.read(*reinterpret_cast<const ffi::ExecuteFrame*>(frame));
      fault != nullptr) {
    std::snprintf(error.data(), error.size(), "a host callback was called with %s", fault);
    return make_error(*frame, error.data());
  }
  const HostFunction function = host_function.load(std::memory_order_acquire);
  if (function == nullptr) {
    return make_error(*frame, "a host callback was called before cyxla was initialized");
  }
  return function(call, error) ? nullptr : make_error(*frame, error.data());
}

}  // namespace cyxla::pjrt
