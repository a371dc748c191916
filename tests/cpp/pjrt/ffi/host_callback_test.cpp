// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/host_callback.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "pjrt/element_type.h"
#include "pjrt/ffi/registry.h"
#include "support/host_frame.h"
#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using test::host_buffer;
using test::HostFrame;

// XLA's PrimitiveType.
constexpr int kS64 = 5;
constexpr int kF32 = 11;
constexpr int kToken = 17;

std::string fault_of(const HostFrame& frame) {
  HostCall call;
  const char* fault = call.read(frame.frame);
  return fault == nullptr ? "" : fault;
}

TEST(HostCallTest, AWellFormedFrame) {
  float matrix[6] = {};
  float scalar = 0;
  std::int64_t numbers[2] = {};
  const std::vector<std::int64_t> two_by_three = {2, 3};
  const std::vector<std::int64_t> none = {4, 0};
  const std::vector<std::int64_t> two = {2};
  HostFrame frame(7);
  frame.set_arguments({host_buffer(kF32, matrix, two_by_three), host_buffer(kF32, &scalar, {}),
                       host_buffer(kF32, nullptr, none)});
  frame.set_results({host_buffer(kToken, nullptr, {}), host_buffer(kS64, numbers, two)});
  HostCall call;
  ASSERT_EQ(call.read(frame.frame), nullptr);
  EXPECT_EQ(call.function(), 7U);
  ASSERT_EQ(call.num_arguments(), 3U);
  ASSERT_EQ(call.num_results(), 2U);
  const HostArray first = call.argument(0);
  EXPECT_EQ(first.data, matrix);
  EXPECT_EQ(first.element_type, PJRT_Buffer_Type_F32);
  EXPECT_EQ(std::vector(first.dimensions.begin(), first.dimensions.end()), two_by_three);
  EXPECT_EQ(first.size_bytes, sizeof matrix);
  EXPECT_TRUE(call.argument(1).dimensions.empty());
  EXPECT_EQ(call.argument(1).size_bytes, sizeof scalar);
  EXPECT_EQ(call.argument(2).size_bytes, 0U);
  EXPECT_EQ(call.result(0).element_type, PJRT_Buffer_Type_TOKEN);
  EXPECT_EQ(call.result(0).size_bytes, 0U);
  EXPECT_EQ(call.result(1).element_type, PJRT_Buffer_Type_S64);
  EXPECT_EQ(call.result(1).data, numbers);
  EXPECT_EQ(call.result(1).size_bytes, sizeof numbers);
}

TEST(HostCallTest, NoArraysAtAll) {
  HostFrame frame(std::numeric_limits<std::uint64_t>::max());
  HostCall call;
  ASSERT_EQ(call.read(frame.frame), nullptr);
  EXPECT_EQ(call.function(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(call.num_arguments() + call.num_results(), 0U);
}

TEST(HostCallTest, EveryElementType) {
  constexpr std::size_t kNumTypes = 24;
  double data[2] = {};
  std::size_t known = 0;
  for (int type = -1; type <= 40; ++type) {
    HostFrame frame;
    frame.set_arguments({host_buffer(type, data, {})});
    HostCall call;
    if (const char* fault = call.read(frame.frame); fault != nullptr) {
      EXPECT_STREQ(fault,
                   "an array whose elements are smaller than a byte, which NumPy does not support");
      continue;
    }
    ++known;
    const HostArray array = call.argument(0);
    EXPECT_EQ(array.size_bytes, itemsize(array.element_type)) << type;
    EXPECT_EQ(array.size_bytes == 0, type == kToken) << type;
  }
  EXPECT_EQ(known, kNumTypes);
}

TEST(HostCallTest, MalformedArraysAreTold) {
  float data[6] = {};
  const std::vector<std::int64_t> dimensions = {2, 3};
  const std::vector<std::int64_t> negative = {2, -3};
  const std::vector<std::int64_t> huge = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  const ffi::Buffer good = host_buffer(kF32, data, dimensions);
  const auto changed = [&](const std::function<void(ffi::Buffer&)>& change) {
    ffi::Buffer buffer = good;
    change(buffer);
    return buffer;
  };
  const struct {
    ffi::Buffer buffer;
    const char* fault;
  } kCases[] = {
      {changed([](ffi::Buffer& b) { b.rank = -1; }), "an array of an invalid rank"},
      {changed([](ffi::Buffer& b) { b.rank = 65; }), "an array of an invalid rank"},
      {changed([](ffi::Buffer& b) { b.dims = nullptr; }), "an array of an invalid rank"},
      {changed([](ffi::Buffer& b) { b.data = nullptr; }), "an array of an invalid size"},
      {changed([&](ffi::Buffer& b) { b.dims = negative.data(); }), "an array of an invalid size"},
      {changed([&](ffi::Buffer& b) { b.dims = huge.data(); }), "an array of an invalid size"},
      {changed([](ffi::Buffer& b) { b.dtype = 0; }),
       "an array whose elements are smaller than a byte, which NumPy does not support"},
      {changed([](ffi::Buffer& b) { b.dtype = 1000; }),
       "an array whose elements are smaller than a byte, which NumPy does not support"},
  };
  for (const auto& [buffer, fault] : kCases) {
    HostFrame argument;
    argument.set_arguments({good, buffer});
    EXPECT_EQ(fault_of(argument), fault);
    HostFrame result;
    result.set_arguments({good});
    result.set_results({good, buffer});
    EXPECT_EQ(fault_of(result), fault);
  }
}

TEST(HostCallTest, MalformedListsAreTold) {
  float data[1] = {};
  const int other_kind = 2;
  void* const null_value = nullptr;
  const struct {
    std::function<void(ffi::Values&)> change;
    const char* fault;
  } kCases[] = {
      {[](ffi::Values& v) { v.size = -1; }, "an invalid number of arrays"},
      {[](ffi::Values& v) { v.size = (1 << 20) + 1; }, "an invalid number of arrays"},
      {[](ffi::Values& v) { v.types = nullptr; }, "an invalid number of arrays"},
      {[](ffi::Values& v) { v.values = nullptr; }, "an invalid number of arrays"},
      {[&](ffi::Values& v) { v.types = &other_kind; },
       "an argument or result that is not an array"},
      {[&](ffi::Values& v) { v.values = &null_value; },
       "an argument or result that is not an array"},
  };
  for (const auto& [change, fault] : kCases) {
    for (const bool of_results : {false, true}) {
      HostFrame frame;
      frame.set_arguments({host_buffer(kF32, data, {})});
      frame.set_results({host_buffer(kF32, data, {})});
      change(of_results ? frame.frame.results : frame.frame.arguments);
      EXPECT_EQ(fault_of(frame), fault) << of_results;
    }
  }
}

TEST(HostCallTest, WithoutTheIndexNothingSaysWhichFunction) {
  const std::function<void(HostFrame&)> kChanges[] = {
      [](HostFrame& f) { f.frame.attributes.size = 0; },
      [](HostFrame& f) { f.frame.attributes.size = -1; },
      [](HostFrame& f) { f.frame.attributes.size = 1; },  // the index is the second
      [](HostFrame& f) { f.frame.attributes.names = nullptr; },
      [](HostFrame& f) { f.frame.attributes.types = nullptr; },
      [](HostFrame& f) { f.frame.attributes.values = nullptr; },
      [](HostFrame& f) {
        f.name = {"indexes", 7};
      },
      [](HostFrame& f) {
        f.name = {nullptr, 0};
      },
      [](HostFrame& f) { f.attribute_types[1] = 1; },
      [](HostFrame& f) { f.attributes[1] = nullptr; },
      [](HostFrame& f) { f.scalar.dtype = kS64; },
      [](HostFrame& f) { f.scalar.value = nullptr; },
  };
  for (std::size_t i = 0; i < std::size(kChanges); ++i) {
    HostFrame frame;
    kChanges[i](frame);
    EXPECT_EQ(fault_of(frame), "no attribute `index`") << i;
  }
}

// Written by the host function.
std::uint64_t last_function = 0;

class HostCallbackHandlerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    last_function = 0;
    set_host_function([](const HostCall& call, HostCallError& error) {
      last_function = call.function();
      std::snprintf(error.data(), error.size(), "function %d failed",
                    static_cast<int>(call.function()));
      return call.function() < 10;
    });
  }
  void TearDown() override { set_host_function(nullptr); }

  // Returns "", or the message of the error that the handler returns.
  static std::string call(HostFrame& frame) {
    ffi::Error* const error = host_callback_handler(frame.start());
    EXPECT_EQ(error, error == nullptr ? nullptr : test::marked_error());
    return error == nullptr ? "" : HostFrame::message();
  }
};

TEST_F(HostCallbackHandlerTest, CallsTheHostInTheStageExecute) {
  HostFrame frame(4);
  for (const int stage : {0, 1, 2, 4}) {
    frame.frame.start.stage = stage;
    EXPECT_EQ(call(frame), "");
    EXPECT_EQ(last_function, 0U) << stage;
  }
  frame.frame.start.stage = ffi::kExecuteStage;
  EXPECT_EQ(call(frame), "");
  EXPECT_EQ(last_function, 4U);
}

TEST_F(HostCallbackHandlerTest, TheHostsErrorIsThePrograms) {
  HostFrame frame(12);
  EXPECT_EQ(call(frame), "function 12 failed");
}

TEST_F(HostCallbackHandlerTest, AFrameThatIsWrongNeverReachesTheHost) {
  HostFrame malformed(3);
  malformed.frame.arguments.size = -1;
  EXPECT_EQ(call(malformed), "a host callback was called with an invalid number of arrays");
  HostFrame smaller(3);
  smaller.frame.start.struct_size = offsetof(ffi::ExecuteFrame, future) - 1;
  EXPECT_EQ(call(smaller), "a host callback was given a call frame of another FFI version");
  EXPECT_EQ(last_function, 0U);
}

TEST_F(HostCallbackHandlerTest, WithoutAHostItIsAnError) {
  set_host_function(nullptr);
  HostFrame frame(3);
  EXPECT_EQ(call(frame), "a host callback was called before cyxla was initialized");
}

TEST_F(HostCallbackHandlerTest, ItsVersionIsOneThatEveryPluginTakes) {
  HostFrame frame(3);
  ffi::Metadata metadata;
  EXPECT_EQ(ask_for_metadata(host_callback_handler, *frame.start(), metadata), nullptr);
  EXPECT_EQ(metadata.api_version.major_version, 0);
  EXPECT_EQ(metadata.api_version.minor_version, 1);
  EXPECT_EQ(metadata.traits, 0U);
  EXPECT_EQ(metadata.state_type_id, 0);
  EXPECT_EQ(last_function, 0U);
}

// Extensions other than metadata are ignored.
TEST_F(HostCallbackHandlerTest, OtherExtensionsAreLetPass) {
  HostFrame frame(5);
  ffi::InternalExtension other = {sizeof other, 2, nullptr};
  frame.frame.start.extension_start = &other;
  EXPECT_EQ(call(frame), "");
  EXPECT_EQ(last_function, 5U);
}

class HostCallbackRegistrationTest : public test::PjrtTest {};

TEST_F(HostCallbackRegistrationTest, APluginTakesItAsItIs) {
  for (const int minor : {2, 4, 5}) {
    fake.reset();
    fake.set(FAKE_PLUGIN_FFI_MINOR, minor);
    FfiRegistry registry(api());
    for (const char* target : kHostCallbackTargets) {
      const FfiRegistration registration =
          registry.register_handler(target, "Host", reinterpret_cast<void*>(host_callback_handler));
      EXPECT_FALSE(registration.adapted);
      EXPECT_EQ(registration.handler_version, (FfiVersion{0, 1}));
      EXPECT_NE(fake.recorded(FAKE_PLUGIN_FFI_HANDLERS).find(target), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace cyxla::pjrt
