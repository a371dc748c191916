// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/adapter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "support/child_process.h"
#include "support/errors.h"
#include "support/ffi_handlers.h"

namespace cyxla::pjrt {
namespace {

using test::adding_handler;

ffi::Error* failing_handler(ffi::CallFrame* /*frame*/) { return test::marked_error(); }

// A metadata request as a plugin makes it.
struct MetadataCall {
  MetadataCall() {
    metadata.struct_size = ffi::kMetadataSize;
    extension = {{sizeof extension, ffi::kMetadataExtension, nullptr}, &metadata};
    frame.struct_size = sizeof frame;
    frame.extension_start = &extension.base;
  }

  ffi::Metadata metadata = {};
  ffi::MetadataExtension extension = {};
  ffi::CallFrame frame = {};
};

TEST(FfiAdapterTest, CallsReachTheHandlerAsTheyAre) {
  std::atomic<int> sum = 0;
  ffi::CallFrame frame = {};
  frame.context = &sum;
  const ffi::Handler adapted = adapt_ffi_handler(adding_handler<0, 5, 3>, 2);
  EXPECT_EQ(adapted(&frame), nullptr);
  EXPECT_EQ(adapted(&frame), nullptr);
  EXPECT_EQ(sum, 6);
  // The adapter ignores other extensions.
  ffi::InternalExtension other = {sizeof other, 2, nullptr};
  frame.extension_start = &other;
  EXPECT_EQ(adapted(&frame), nullptr);
  EXPECT_EQ(sum, 9);
  EXPECT_EQ(adapt_ffi_handler(failing_handler, 2)(&frame), test::marked_error());
}

TEST(FfiAdapterTest, TheAnswerIsNoNewerThanAskedFor) {
  MetadataCall call;
  EXPECT_EQ(adapt_ffi_handler(adding_handler<0, 5>, 2)(&call.frame), nullptr);
  EXPECT_EQ(call.metadata.api_version.major_version, 0);
  EXPECT_EQ(call.metadata.api_version.minor_version, 2);
  EXPECT_EQ(call.metadata.traits, test::kTraits);
  EXPECT_EQ(call.frame.extension_start, &call.extension.base);
  EXPECT_EQ(call.metadata.state_type_id, 0);  // an older plugin has no room for it
  EXPECT_EQ(adapt_ffi_handler(adding_handler<0, 1>, 2)(&call.frame), nullptr);
  EXPECT_EQ(call.metadata.api_version.minor_version, 1);
  EXPECT_EQ(adapt_ffi_handler(adding_handler<1, 3>, 2)(&call.frame), nullptr);
  EXPECT_EQ(call.metadata.api_version.major_version, 1);
}

TEST(FfiAdapterTest, AnErrorOfTheHandlerIsTheAnswer) {
  MetadataCall call;
  call.metadata.api_version.minor_version = 9;
  EXPECT_EQ(adapt_ffi_handler(failing_handler, 2)(&call.frame), test::marked_error());
  EXPECT_EQ(call.metadata.api_version.minor_version, 9);
  EXPECT_EQ(call.frame.extension_start, &call.extension.base);
}

TEST(FfiAdapterTest, OneFunctionForEachHandlerAndVersion) {
  const ffi::Handler first = adapt_ffi_handler(adding_handler<0, 5, 1>, 2);
  const ffi::Handler other = adapt_ffi_handler(adding_handler<0, 5, 2>, 2);
  const ffi::Handler newer = adapt_ffi_handler(adding_handler<0, 5, 1>, 3);
  EXPECT_NE(first, other);
  EXPECT_NE(first, newer);
  EXPECT_EQ(adapt_ffi_handler(adding_handler<0, 5, 1>, 2), first);
  std::atomic<int> sum = 0;
  ffi::CallFrame frame = {};
  frame.context = &sum;
  first(&frame);
  other(&frame);
  EXPECT_EQ(sum, 3);
}

TEST(FfiAdapterTest, AllAreUsedAndTheNextIsRefused) {
  const auto use_up = [] {
    std::size_t taken = 0;
    const std::string message = test::message_of(ErrorCode::kUnsupported, [&] {
      for (int minor = 100;; ++minor) {
        const ffi::Handler adapted = adapt_ffi_handler(adding_handler<0, 1000>, minor);
        MetadataCall call;
        adapted(&call.frame);
        if (call.metadata.api_version.minor_version == minor) {
          ++taken;
        }
      }
    });
    adapt_ffi_handler(adding_handler<0, 1000>, 100);  // an existing adapter is still available
    return std::to_string(taken) + " " + message;
  };
  // In a child process, because adapters are never freed.
  const std::string text = test::in_child(use_up);
  EXPECT_LE(std::stoul(text), kNumFfiAdapters);
  EXPECT_GE(std::stoul(text), kNumFfiAdapters - 20);  // other tests of this process take a few
  EXPECT_NE(text.find(" all 256 adapters for handlers of a newer XLA FFI are in use; build handlers"
                      " with headers of minor version "),
            std::string::npos)
      << text;
}

TEST(FfiAdapterTest, ThreadsCallWhileOthersAreTaken) {
  std::atomic<int> sum = 0;
  const ffi::Handler adapted = adapt_ffi_handler(adding_handler<0, 5, 1>, 2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      ffi::CallFrame frame = {};
      frame.context = &sum;
      for (int call = 0; call < 2000; ++call) {
        adapted(&frame);
        adapt_ffi_handler(adding_handler<0, 5, 7>, 10 + (call + i) % 8)(&frame);
        MetadataCall metadata_call;
        adapted(&metadata_call.frame);
        EXPECT_EQ(metadata_call.metadata.api_version.minor_version, 2);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(sum, 4 * 2000 * 8);
}

}  // namespace
}  // namespace cyxla::pjrt
