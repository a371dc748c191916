// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using test::FakePlugin;
using test::message_of;

class FfiTest : public test::PjrtTest {
 protected:
  int handler = 0;  // only its address matters
};

TEST_F(FfiTest, TargetPlatformAndHandlerReachThePlugin) {
  register_ffi_handler(api(), "my_target", "Host", &handler);
  register_ffi_handler(api(), "other", "CUDA", &handler);
  char address[32];
  std::snprintf(address, sizeof address, "%p", static_cast<void*>(&handler));
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_FFI_HANDLERS),
            std::string("my_target Host ") + address + "\nother CUDA " + address + "\n");
}

TEST_F(FfiTest, WithoutTheExtensionItIsUnsupported) {
  for (const int kind : {1, 2, 3}) {
    fake.set(FAKE_PLUGIN_FFI, kind);
    EXPECT_EQ(message_of(ErrorCode::kUnsupported,
                         [&] { register_ffi_handler(api(), "my_target", "Host", &handler); }),
              "cannot register the custom-call target my_target: the plugin " +
                  std::string(FakePlugin::path()) + " has no FFI extension")
        << kind;
  }
  EXPECT_EQ(fake.calls("PJRT_FFI_Register_Handler"), 0U);
}

TEST_F(FfiTest, ARefusalIsThePluginsError) {
  fake.fail("PJRT_FFI_Register_Handler", 1, PJRT_Error_Code_ALREADY_EXISTS, "taken");
  EXPECT_EQ(
      message_of(ErrorCode::kPlugin,
                 [&] { register_ffi_handler(api(), "my_target", "Host", &handler); }),
      "PJRT_FFI_Register_Handler: the plugin refused the custom-call target my_target: taken");
}

}  // namespace
}  // namespace cyxla::pjrt
