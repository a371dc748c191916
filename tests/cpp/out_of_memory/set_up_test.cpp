// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "support/ffi_handlers.h"

#include "out_of_memory/out_of_memory.h"

namespace cyxla::runtime {
namespace {

using test::FailingMemory;
using test::OutOfMemoryTest;
using test::ProgramReference;
using test::SampleCall;

TEST_F(OutOfMemoryTest, TheRequestsAreCountedAndFail) {
  const std::int64_t blocks = FailingMemory::blocks();
  {
    const std::string text(100, 'a');
    const AlignedMemory memory = make_aligned(100);
    EXPECT_EQ(FailingMemory::blocks(), blocks + 2);
  }
  EXPECT_EQ(FailingMemory::blocks(), blocks);
  FailingMemory::fail(2);
  const AlignedMemory first = make_aligned(1);
  EXPECT_THROW(make_aligned(1), std::bad_alloc);
  EXPECT_TRUE(FailingMemory::failed());
  FailingMemory::fail(0);
}

TEST_F(OutOfMemoryTest, Load) {
  const auto load = [&](int nth) -> std::string {
    const LoadRequest request = {
        .path = test::FakePlugin::path(),
        .options = {{"cpu_device_count", std::int64_t{1}}},
        .threads = 2,
    };
    Attempt attempt;
    attempt.act = [&] { return Runtime::get() != nullptr || &Runtime::load(request) != nullptr; };
    bool failed = false;
    const std::string message = try_once(attempt, nth, failed);
    if (failed && (message != "out of memory" || fake.live() != 0)) {
      return message + " " + fake.live_by_kind();
    }
    if (!failed && !message.empty()) {
      return message;
    }
    bool failed_again = false;
    std::string wrong = try_once(attempt, 0, failed_again);
    if (wrong.empty()) {
      wrong = call_.run(compile(SampleCall::kCode)->spec(), 1);
    }
    Runtime::shut_down();
    if (!wrong.empty() || fake.live() != 0 || fake.violations() != 0) {
      return wrong + fake.live_by_kind() + fake.recorded(FAKE_PLUGIN_VIOLATION);
    }
    return failed ? "reported" : "not reached";
  };
  sweep_in_children("load", load, 20);
}

TEST_F(OutOfMemoryTest, Compile) {
  loaded();
  CompileRequest request = test::request_of(
      SampleCall::kCode,
      test::signature_of(SampleCall::kCode, "a name that needs memory of its own"));
  request.overrides = {{"xla_some_flag", true}, {"xla_name", "value"}};
  for (const auto route : {RouteRequest::Route::kPjrt, RouteRequest::Route::kAuto}) {
    request.route.route = route;
    ProgramReference program;
    sweep("compile",
          {.act =
               [&] {
                 program = loaded().compile(request).program;
                 return true;
               },
           .check = [&] { return call_.run(program->spec(), 1); },
           .after = [&] { program.reset(); }},
          30);
  }
}

// The error message for a plugin's refusal needs memory itself.
TEST_F(OutOfMemoryTest, CompileSomethingWrong) {
  loaded();
  sweep("compile_error",
        {.act =
             [&] {
               try {
                 static_cast<void>(loaded().compile(
                     test::request_of("nonsense that no plugin would understand", {})));
               } catch (const Error&) {
                 return true;
               }
               return false;
             }},
        3);
}

TEST_F(OutOfMemoryTest, OtherSetUp) {
  fake.set(FAKE_PLUGIN_PLATFORM, 1);
  loaded();
  const ProgramReference program = compile(SampleCall::kCode);
  const std::string target = "the target of a custom call";
  const std::string platform = "Host";
  sweep("serialize", {.act = [&] { return !loaded().serialize(*program).empty(); }}, 1);
  sweep("register_ffi_handler",
        {.act =
             [&] {
               loaded().register_ffi_handler(target, platform, test::handler_address<0, 5>());
               return true;
             }},
        0);
  sweep("error_info",
        {.before = [&] { static_cast<void>(execute(nullptr, nullptr, nullptr, 0)); },
         .act = [&] { return error_info().count > 0; }},
        1);
}

// An exception that leaves std::call_once makes ThreadSanitizer's pthread_once wait forever.
#if !defined(__SANITIZE_THREAD__)

// A failed attempt does not keep the next one from trying the plugin.
TEST_F(OutOfMemoryTest, DirectRefusal) {
  const auto find_out = [&](int nth) {
    fake.set(FAKE_PLUGIN_PLATFORM, 1);
    Runtime& runtime = loaded();
    const Attempt attempt = {.act = [&] { return !runtime.direct_refusal(true).empty(); }};
    bool failed = false;
    const std::string message = try_once(attempt, nth, failed);
    bool failed_again = false;
    const std::string again = try_once(attempt, 0, failed_again);
    const bool is_right = message == (failed ? "out of memory" : "") && again.empty();
    const std::string refusal = runtime.direct_refusal(true);
    Runtime::shut_down();
    return !is_right || refusal.find("cannot compile") == std::string::npos
               ? "wrong: " + message + again + refusal
           : failed ? "reported"
                    : "not reached";
  };
  sweep_in_children("direct_refusal", find_out, 5);
}

#endif

// A handler that the plugin already has when memory runs out is registered again by the next
// attempt.
TEST_F(OutOfMemoryTest, RegisterFfiHandler) {
  const auto add = [&](int nth) {
    Runtime& runtime = loaded();
    const std::string target = "the target of a custom call";
    const std::string platform = "Host";
    const Attempt attempt = {.act = [&] {
      return runtime.register_ffi_handler(target, platform, test::handler_address<0, 5>()).adapted;
    }};
    bool failed = false;
    const std::string message = try_once(attempt, nth, failed);
    bool failed_again = false;
    const std::string again = try_once(attempt, 0, failed_again);
    std::atomic<int> sum = 0;
    const bool is_right = message == (failed ? "out of memory" : "") && again.empty() &&
                          fake.call_target(target.c_str(), "Host", &sum) == 1 && sum == 1 &&
                          fake.violations() == 0;
    Runtime::shut_down();
    return !is_right ? "wrong: " + message + again : failed ? "reported" : "not reached";
  };
  sweep_in_children("first_ffi_handler", add, 3);
}

}  // namespace
}  // namespace cyxla::runtime
