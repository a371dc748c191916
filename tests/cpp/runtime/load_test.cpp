// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "support/child_process.h"
#include "support/ffi_handlers.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using std::string_literals::operator""s;
using test::FakePlugin;
using test::in_child;
using test::message_of;

const std::string kPath = FakePlugin::path();

class LoadTest : public test::RuntimeTest {
 protected:
  std::string load_message(const pjrt::NamedValues& options = {}) {
    return message_of(ErrorCode::kPlugin,
                      [&] { Runtime::load({.path = kPath, .options = options}); });
  }
};

TEST_F(LoadTest, GivesTheRuntimeOfTheProcess) {
  EXPECT_EQ(Runtime::get(), nullptr);
  Runtime& runtime =
      Runtime::load({.path = kPath, .options = {{"cpu_device_count", std::int64_t{1}}}});
  EXPECT_EQ(Runtime::get(), &runtime);
  EXPECT_EQ(runtime.plugin().api().source(), kPath);
  EXPECT_EQ(runtime.client().platform_name(), "fake");
  EXPECT_TRUE(runtime.capabilities().aliased_inputs);
  EXPECT_TRUE(runtime.capabilities().inplace_outputs);
  EXPECT_FALSE(Runtime::forked());
  EXPECT_EQ(fake.live(), 1) << fake.live_by_kind();  // the client
}

TEST_F(LoadTest, OnePluginIsLoadedPerProcess) {
  loaded();
  EXPECT_EQ(load_message(),
            "the process already runs the plugin " + kPath + "; a process can load only one");
  EXPECT_EQ(fake.live(FAKE_PLUGIN_CLIENT), 1);
}

TEST_F(LoadTest, TheCapOnThreadsIsInTheEnvironmentWhileTheClientIsMade) {
  ASSERT_EQ(setenv("PJRT_NPROC", "3", 1), 0);
  EXPECT_THROW(Runtime::load({.path = "/nope.so", .threads = 7}), Error);
  Runtime::load({.path = kPath, .threads = 7});
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_POOL_SIZE), "7");
  EXPECT_STREQ(getenv("PJRT_NPROC"), "3");
}

TEST_F(LoadTest, AFailedLoadCanBeTriedAgain) {
  EXPECT_THROW(Runtime::load({.path = "/nope.so"}), Error);
  fake.fail("PJRT_Plugin_Initialize", 1, PJRT_Error_Code_UNAVAILABLE, "asleep");
  EXPECT_EQ(load_message(), "PJRT_Plugin_Initialize: UNAVAILABLE: asleep");
  for (const char* function : {"PJRT_Client_Create", "PJRT_Client_PlatformName",
                               "PJRT_Client_PlatformVersion", "PJRT_Client_AddressableDevices"}) {
    fake.fail(function, 1, PJRT_Error_Code_INTERNAL, "no");
    EXPECT_EQ(load_message(), function + ": INTERNAL: no"s);
    EXPECT_EQ(Runtime::get(), nullptr);
    EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
  }
  loaded();
  EXPECT_EQ(fake.calls("PJRT_Plugin_Initialize"), 2U);  // the failed one and the successful one
}

TEST_F(LoadTest, OtherOptionsAreNeverDropped) {
  EXPECT_EQ(load_message({{"pooling_allocator", true}}),
            "PJRT_Client_Create: INVALID_ARGUMENT: Unexpected option name passed to "
            "PJRT_Client_Create: pooling_allocator");
  EXPECT_EQ(fake.calls("PJRT_Client_Create"), 1U);
}

// When any call fails while the runtime is made, either nothing is left behind or the runtime
// works.
TEST_F(LoadTest, EveryFailingCallLeavesAllOrNothing) {
  std::uint64_t nth = 1;
  std::string outcome;
  int refused = 0;
  int loaded = 0;
  for (; nth < 100; ++nth) {
    outcome = in_child([&]() -> std::string {
      fake.fail(nullptr, nth, PJRT_Error_Code_INTERNAL, "injected");
      std::string result = "loaded";
      try {
        Runtime::load({.path = kPath});
        if (fake.failures() == 0) {
          result = "nothing left to fail";
        }
        Runtime::shut_down();
      } catch (const Error& error) {
        result = error.what();
        result = result.ends_with(": INTERNAL: injected") ? "refused" : result;
      }
      return fake.live() == 0 && fake.violations() == 0
                 ? result
                 : fake.live_by_kind() + fake.recorded(FAKE_PLUGIN_VIOLATION);
    });
    if (outcome == "nothing left to fail") {
      break;
    }
    (outcome == "loaded" ? loaded : refused) += 1;
    EXPECT_TRUE(outcome == "loaded" || outcome == "refused") << nth << ": " << outcome;
  }
  EXPECT_EQ(outcome, "nothing left to fail");
  EXPECT_EQ(refused, 6);  // two of the plugin, four of the client
  EXPECT_GT(loaded, 10);  // the probe's calls
}

TEST_F(LoadTest, ShuttingDownNothingIsNothing) {
  Runtime::shut_down();
  EXPECT_EQ(fake.all_calls(), 0U);
}

TEST_F(LoadTest, AfterShutdownTheRuntimeIsClosedForGood) {
  Runtime& runtime = loaded();
  Runtime::shut_down();
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
  const std::uint64_t calls = fake.all_calls();
  Runtime::shut_down();
  EXPECT_EQ(Runtime::get(), &runtime);
  EXPECT_EQ(message_of(ErrorCode::kShutdown, [&] { compile("output F32[] fill 1"); }),
            "cannot compile: the runtime is shut down");
  EXPECT_EQ(message_of(ErrorCode::kShutdown,
                       [&] { runtime.register_ffi_handler("target", "Host", nullptr); }),
            "cannot register a custom-call target: the runtime is shut down");
  EXPECT_EQ(load_message(),
            "the process already runs the plugin " + kPath + "; a process can load only one");
  EXPECT_EQ(fake.all_calls(), calls);
}

TEST_F(LoadTest, HandlersAreRegistered) {
  const pjrt::FfiRegistration registration =
      loaded().register_ffi_handler("target", "Host", test::handler_address<0, 5, 3>());
  EXPECT_TRUE(registration.adapted);
  std::atomic<int> sum = 0;
  EXPECT_EQ(fake.call_target("target", "Host", &sum), 1);
  EXPECT_EQ(sum, 3);
}

}  // namespace
}  // namespace cyxla::runtime
