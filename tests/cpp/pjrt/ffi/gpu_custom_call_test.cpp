// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/gpu_custom_call.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using test::FakePlugin;
using test::message_of;

class GpuCustomCallTest : public test::PjrtTest {
 protected:
  void SetUp() override {
    test::PjrtTest::SetUp();
    fake.set(FAKE_PLUGIN_GPU_CUSTOM_CALL, 1);
  }
  static std::string address(const void* pointer) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", pointer);
    return text;
  }

  std::array<int, 4> stages = {};  // only their addresses matter
};

TEST_F(GpuCustomCallTest, EveryStageReachesThePluginInItsPlace) {
  register_gpu_custom_call(api(), "bundle", {1, &stages[0], &stages[1], &stages[2], &stages[3]});
  register_gpu_custom_call(api(), "plain", {.execute = &stages[3]});
  register_gpu_custom_call(api(), "legacy", {.api_version = 0, .execute = &stages[0]});
  const std::string null = address(nullptr);
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_GPU_CUSTOM_CALLS),
            "bundle 1 " + address(&stages[0]) + " " + address(&stages[1]) + " " +
                address(&stages[2]) + " " + address(&stages[3]) + "\nplain 1 " + null + " " + null +
                " " + null + " " + address(&stages[3]) + "\nlegacy 0 " + null + " " + null + " " +
                null + " " + address(&stages[0]) + "\n");
}

TEST_F(GpuCustomCallTest, WithoutTheExtensionItIsUnsupported) {
  for (const int kind : {0, 2, 3}) {
    fake.set(FAKE_PLUGIN_GPU_CUSTOM_CALL, kind);
    EXPECT_FALSE(has_gpu_custom_calls(api())) << kind;
    EXPECT_EQ(message_of(ErrorCode::kUnsupported,
                         [&] { register_gpu_custom_call(api(), "t", {.execute = &stages[0]}); }),
              "cannot register the custom-call target t: the plugin " +
                  std::string(FakePlugin::path()) +
                  " has no GPU custom-call extension; use a GPU plugin")
        << kind;
  }
  fake.set(FAKE_PLUGIN_GPU_CUSTOM_CALL, 1);
  EXPECT_TRUE(has_gpu_custom_calls(api()));
  EXPECT_EQ(fake.calls("PJRT_Gpu_Register_Custom_Call"), 0U);
}

TEST_F(GpuCustomCallTest, AHandlerThatCannotBeCalledIsAnError) {
  EXPECT_EQ(message_of(ErrorCode::kArgument,
                       [&] {
                         register_gpu_custom_call(api(), "t", {1, &stages[0]});
                       }),
            "cannot register the custom-call target t: its execute function is null; pass one");
  for (const GpuHandler& handler : {GpuHandler{.api_version = 2, .execute = &stages[0]},
                                    GpuHandler{0, nullptr, nullptr, &stages[1], &stages[0]}}) {
    EXPECT_EQ(
        message_of(ErrorCode::kArgument, [&] { register_gpu_custom_call(api(), "t", handler); }),
        "cannot register the custom-call target t: api_version is " +
            std::to_string(handler.api_version) +
            "; pass 1 for the typed FFI, or 0 for a single function of the old API");
  }
  EXPECT_EQ(fake.calls("PJRT_Gpu_Register_Custom_Call"), 0U);
}

TEST_F(GpuCustomCallTest, ARefusalIsThePluginsError) {
  fake.fail("PJRT_Gpu_Register_Custom_Call", 1, PJRT_Error_Code_ALREADY_EXISTS, "taken");
  EXPECT_EQ(message_of(ErrorCode::kPlugin,
                       [&] { register_gpu_custom_call(api(), "t", {.execute = &stages[0]}); }),
            "PJRT_Gpu_Register_Custom_Call: the plugin refused the custom-call target t: taken");
}

}  // namespace
}  // namespace cyxla::pjrt
