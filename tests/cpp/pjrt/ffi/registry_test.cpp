// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "support/ffi_handlers.h"
#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using test::FakePlugin;
using test::handler_address;
using test::message_of;

const std::string kPlugin = FakePlugin::path();

ffi::Error* silent_handler(ffi::CallFrame* frame) {
  ffi::ErrorCreateArgs args = {sizeof args, nullptr, "I tell nothing", 13};
  return frame->api->error_create(&args);
}

class FfiTest : public test::PjrtTest {
 protected:
  FfiRegistration add(const std::string& target, void* handler,
                      const std::string& platform = "Host") {
    if (!registry_) {
      registry_.emplace(api());
    }
    return registry_->register_handler(target, platform, handler);
  }
  std::string refusal(ErrorCode code, const std::string& target, void* handler) {
    return message_of(code, [&] { add(target, handler); });
  }
  // Returns whether the plugin has recorded a line for the handler.
  bool is_kept(const std::string& target, const std::string& platform, void* handler) const {
    char address[32];
    std::snprintf(address, sizeof address, "%p\n", handler);
    return fake.recorded(FAKE_PLUGIN_FFI_HANDLERS).find(target + " " + platform + " " + address) !=
           std::string::npos;
  }
  // Returns what one call of a target adds to its context; -1 for a missing target.
  int added(const char* target) const {
    std::atomic<int> sum = 0;
    return fake.call_target(target, "Host", &sum) == 1 ? sum.load() : -1;
  }

  std::optional<FfiRegistry> registry_;
};

TEST_F(FfiTest, AHandlerThatIsOldEnoughIsGivenAsItIs) {
  for (const auto& [target, handler, minor] :
       {std::tuple("old", handler_address<0, 1>(), 1), {"equal", handler_address<0, 4>(), 4}}) {
    const FfiRegistration registration = add(target, handler);
    EXPECT_EQ(registration.handler_version, (FfiVersion{0, minor}));
    EXPECT_EQ(registration.plugin_version, (FfiVersion{0, 4}));
    EXPECT_FALSE(registration.adapted);
    EXPECT_TRUE(is_kept(target, "Host", handler));
    EXPECT_EQ(added(target), 1);
  }
  add("other", handler_address<0, 1>(), "CUDA");
  EXPECT_TRUE(is_kept("other", "CUDA", handler_address<0, 1>()));
}

TEST_F(FfiTest, ANewerHandlerIsAdapted) {
  for (const int minor : {2, 3, 4}) {
    fake.reset();
    registry_.reset();
    fake.set(FAKE_PLUGIN_FFI_MINOR, minor);
    const FfiRegistration registration = add("newer", handler_address<0, 5, 2>());
    EXPECT_EQ(registration.handler_version, (FfiVersion{0, 5}));
    EXPECT_EQ(registration.plugin_version, (FfiVersion{0, minor}));
    EXPECT_TRUE(registration.adapted);
    EXPECT_FALSE(is_kept("newer", "Host", handler_address<0, 5, 2>()));
    EXPECT_EQ(added("newer"), 2);
  }
}

TEST_F(FfiTest, AnUnknownNewerHandlerIsRefused) {
  EXPECT_EQ(refusal(ErrorCode::kUnsupported, "future", handler_address<0, 6>()),
            "the handler of the custom-call target future was built for XLA FFI 0.6, the plugin " +
                kPlugin +
                " has 0.4, and cyxla adapts handlers only up to 0.5; use a newer plugin,"
                " or build the handler with older headers (an older jaxlib, if it is jaxlib's)");
  EXPECT_EQ(added("future"), -1);
  // A plugin of that version accepts it.
  fake.set(FAKE_PLUGIN_FFI_MINOR, 7);
  registry_.reset();
  EXPECT_FALSE(add("future", handler_address<0, 6>()).adapted);
  EXPECT_EQ(added("future"), 1);
}

TEST_F(FfiTest, AnotherMajorVersionIsRefused) {
  EXPECT_EQ(refusal(ErrorCode::kUnsupported, "major", handler_address<1, 0>()),
            "the handler of the custom-call target major was built for XLA FFI 1.0, the plugin " +
                kPlugin +
                " has 0.4: the layouts of major versions differ; use a plugin and a handler of"
                " the same major version");
  EXPECT_EQ(added("major"), -1);
}

TEST_F(FfiTest, AHandlerThatDoesNotAnswerIsRefused) {
  EXPECT_EQ(refusal(ErrorCode::kUnsupported, "silent", reinterpret_cast<void*>(silent_handler)),
            "the handler of the custom-call target silent does not report which version of"
            " XLA's FFI it was built for: I tell nothing");
  EXPECT_EQ(refusal(ErrorCode::kArgument, "null", nullptr),
            "the handler of the custom-call target null is null");
}

TEST_F(FfiTest, ThePluginIsAskedForItsVersionOnce) {
  add("first", handler_address<0, 4>());
  EXPECT_EQ(fake.calls("PJRT_FFI_Register_Handler"), 2U);
  add("second", handler_address<0, 4>());
  EXPECT_EQ(fake.calls("PJRT_FFI_Register_Handler"), 3U);
  // The probe handler computes nothing.
  EXPECT_EQ(fake.call_target("cyxla_ffi_version_probe", "Host", nullptr), -1);
}

TEST_F(FfiTest, APluginThatDoesNotAskIsRefused) {
  fake.set(FAKE_PLUGIN_FFI_NO_METADATA, 1);
  EXPECT_EQ(
      refusal(ErrorCode::kUnsupported, "target", handler_address<0, 1>()),
      "cannot register the custom-call target target: the plugin " + kPlugin +
          " does not check the version of handlers, so it could call them wrongly; use another"
          " plugin");
  EXPECT_EQ(added("target"), -1);
}

TEST_F(FfiTest, ANameHasOneHandler) {
  add("name", handler_address<0, 4, 1>());
  EXPECT_EQ(refusal(ErrorCode::kArgument, "name", handler_address<0, 4, 2>()),
            "the custom-call target name already has another handler for the platform Host;"
            " choose another name");
  EXPECT_EQ(added("name"), 1);
  const std::uint64_t calls = fake.all_calls();
  EXPECT_FALSE(add("name", handler_address<0, 4, 1>()).adapted);  // the same again
  EXPECT_EQ(fake.all_calls(), calls);
  add("name", handler_address<0, 4, 2>(), "CUDA");
  EXPECT_TRUE(is_kept("name", "CUDA", handler_address<0, 4, 2>()));
}

// The plugin reports success but keeps its own handler.
TEST_F(FfiTest, ANameOfThePluginsOwnIsAnError) {
  for (const int minor : {2, 4, 5}) {
    fake.set(FAKE_PLUGIN_FFI_MINOR, minor);
    registry_.reset();
    EXPECT_EQ(refusal(ErrorCode::kPlugin, "built_in", handler_address<0, 5>()),
              "XLA_FFI_Handler_Register: the plugin " + kPlugin +
                  " did not keep the custom-call target built_in: Duplicate FFI handler"
                  " registration for built_in");
  }
}

TEST_F(FfiTest, WithoutTheExtensionItIsUnsupported) {
  for (const int kind : {1, 2, 3}) {
    fake.set(FAKE_PLUGIN_FFI, kind);
    registry_.reset();
    EXPECT_EQ(refusal(ErrorCode::kUnsupported, "my_target", handler_address<0, 1>()),
              "cannot register the custom-call target my_target: the plugin " + kPlugin +
                  " has no FFI extension; use another plugin")
        << kind;
  }
  EXPECT_EQ(fake.calls("PJRT_FFI_Register_Handler"), 0U);
}

TEST_F(FfiTest, ARefusalIsThePluginsError) {
  add("first", handler_address<0, 1>());
  fake.fail("PJRT_FFI_Register_Handler", 1, PJRT_Error_Code_ALREADY_EXISTS, "taken");
  EXPECT_EQ(
      refusal(ErrorCode::kPlugin, "my_target", handler_address<0, 1>()),
      "PJRT_FFI_Register_Handler: the plugin refused the custom-call target my_target: taken");
  add("my_target", handler_address<0, 1>());  // the failure leaves nothing behind
  EXPECT_EQ(added("my_target"), 1);
}

TEST_F(FfiTest, ThreadsRegisterAndCall) {
  fake.set(FAKE_PLUGIN_FFI_MINOR, 2);
  add("shared", handler_address<0, 5>());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const std::string target = "target_" + std::to_string(i) + "_" + std::to_string(round);
        EXPECT_TRUE(add(target, handler_address<0, 5>()).adapted);
        EXPECT_EQ(added(target.c_str()), 1);
        EXPECT_EQ(added("shared"), 1);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace cyxla::pjrt
