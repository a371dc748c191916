// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/child_process.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::message_of;

class RuntimeGpuCustomCallTest : public test::RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    fake.set(FAKE_PLUGIN_GPU_CUSTOM_CALL, 1);
  }
  static void add(Runtime& runtime) {
    static int stage = 0;  // only its address matters
    runtime.register_gpu_custom_call("target", {.execute = &stage});
  }
};

TEST_F(RuntimeGpuCustomCallTest, ReachesThePlugin) {
  add(loaded());
  EXPECT_EQ(fake.calls("PJRT_Gpu_Register_Custom_Call"), 1U);
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_GPU_CUSTOM_CALLS).find("target 1 "), 0U);
}

TEST_F(RuntimeGpuCustomCallTest, ARefusalLeavesTheNextAttemptAlone) {
  loaded();
  fake.fail("PJRT_Gpu_Register_Custom_Call", 1, PJRT_Error_Code_INTERNAL, "no room");
  EXPECT_EQ(
      message_of(ErrorCode::kPlugin, [&] { add(loaded()); }),
      "PJRT_Gpu_Register_Custom_Call: the plugin refused the custom-call target target: no room");
  add(loaded());
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_GPU_CUSTOM_CALLS).find("target 1 "), 0U);
}

TEST_F(RuntimeGpuCustomCallTest, NotAfterShutDown) {
  Runtime& runtime = loaded();
  Runtime::shut_down();
  EXPECT_EQ(message_of(ErrorCode::kShutdown, [&] { add(runtime); }),
            "cannot register a custom-call target: the runtime is shut down");
  EXPECT_EQ(fake.calls("PJRT_Gpu_Register_Custom_Call"), 0U);
}

TEST_F(RuntimeGpuCustomCallTest, NotInAForkedChild) {
  loaded();
  const std::string message = test::in_child([&] {
    const std::string refusal = message_of(ErrorCode::kFork, [&] { add(loaded()); });
    return fake.calls("PJRT_Gpu_Register_Custom_Call") == 0 ? refusal : "the plugin was called";
  });
  EXPECT_EQ(message.find("cannot register a custom-call target: this process was forked"), 0U)
      << message;
}

}  // namespace
}  // namespace cyxla::runtime
