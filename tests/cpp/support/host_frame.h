// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "pjrt/ffi/frame.h"
#include "support/ffi_handlers.h"

namespace cyxla::test {

// A host callback's call frame as a plugin makes it. Tests may change it before they use it. A
// handler's error is marked_error(), and its text is here.
class HostFrame {
 public:
  explicit HostFrame(std::uint64_t index = 0) : index_(index) {
    api_.struct_size = sizeof api_;
    api_.error_create = [](pjrt::ffi::ErrorCreateArgs* args) {
      EXPECT_EQ(args->struct_size, pjrt::ffi::kErrorCreateArgsSize);
      EXPECT_EQ(args->code, pjrt::ffi::kInternalError);
      message() = args->message;
      return marked_error();
    };
    frame.start = {offsetof(pjrt::ffi::ExecuteFrame, future), nullptr, &api_, nullptr,
                   pjrt::ffi::kExecuteStage};
    frame.arguments = {sizeof frame.arguments, nullptr, 0, nullptr, nullptr};
    frame.results = {sizeof frame.results, nullptr, 0, nullptr, nullptr};
    frame.attributes = {sizeof frame.attributes, nullptr,       kNumAttributes,
                        attribute_types,         names_.data(), attributes.data()};
    message().clear();
  }
  HostFrame(const HostFrame&) = delete;
  HostFrame& operator=(const HostFrame&) = delete;

  void set_arguments(std::vector<pjrt::ffi::Buffer> buffers) {
    set(arguments_, frame.arguments, std::move(buffers));
  }
  void set_results(std::vector<pjrt::ffi::Buffer> buffers) {
    set(results_, frame.results, std::move(buffers));
  }
  pjrt::ffi::CallFrame* start() { return &frame.start; }

  // The text of this thread's last error.
  static std::string& message() {
    thread_local std::string text;
    return text;
  }

  static constexpr int kU64 = 9;  // of XLA's PrimitiveType
  static constexpr int kNumAttributes = 2;

  pjrt::ffi::ExecuteFrame frame = {};
  int attribute_types[kNumAttributes] = {pjrt::ffi::kScalarAttribute, pjrt::ffi::kScalarAttribute};
  pjrt::ffi::ByteSpan first_name = {"sharding", 8};
  pjrt::ffi::ByteSpan name = {"index", 5};
  pjrt::ffi::Scalar scalar = {kU64, &index_};
  std::vector<void*> attributes = {&other_, &scalar};

 private:
  struct Values {
    std::vector<pjrt::ffi::Buffer> buffers;
    std::vector<void*> pointers;
    std::vector<int> types;
  };

  static void set(Values& values, pjrt::ffi::Values& in_frame,
                  std::vector<pjrt::ffi::Buffer> buffers) {
    values.buffers = std::move(buffers);
    values.pointers.clear();
    for (pjrt::ffi::Buffer& buffer : values.buffers) {
      values.pointers.push_back(&buffer);
    }
    values.types.assign(values.buffers.size(), pjrt::ffi::kBufferArgument);
    in_frame.size = static_cast<std::int64_t>(values.buffers.size());
    in_frame.types = values.types.data();
    in_frame.values = values.pointers.data();
  }

  std::uint64_t index_;
  std::uint64_t unused_ = 99;
  pjrt::ffi::Scalar other_ = {kU64, &unused_};
  pjrt::ffi::Api api_ = {};
  std::vector<const pjrt::ffi::ByteSpan*> names_ = {&first_name, &name};
  Values arguments_, results_;
};

// Makes a dense array of a host callback.
inline pjrt::ffi::Buffer host_buffer(int primitive_type, void* data,
                                     const std::vector<std::int64_t>& dimensions) {
  return {sizeof(pjrt::ffi::Buffer),
          nullptr,
          primitive_type,
          data,
          static_cast<std::int64_t>(dimensions.size()),
          dimensions.empty() ? nullptr : dimensions.data()};
}

}  // namespace cyxla::test
