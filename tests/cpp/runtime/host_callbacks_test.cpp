// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_callbacks.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "support/host_frame.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::HostFrame;
using test::last_message;
using test::ProgramReference;

constexpr const char* kProgram = "output F32[] fill 4\n";
constexpr const char* kRefusal =
    "cannot execute the program f from within a host callback: it runs on a thread of the plugin's "
    "pool, which would wait for itself; execute it before or after the program with the callback, "
    "or directly (route='direct')";

std::atomic<int> steps_back = 0;
std::atomic<int> steps_in = 0;
bool has_something_to_give_up = true;
std::uint64_t failure = 0;  // of the next callbacks
std::uint64_t forgotten = 0;
std::array<std::function<void()>, 2> bodies;  // of the host callbacks, by index

class HostCallbacksTest : public test::RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    steps_back = 0;
    steps_in = 0;
    has_something_to_give_up = true;
    failure = forgotten = 0;
    set_host(
        {.call =
             [](const pjrt::HostCall& call, pjrt::HostCallError& error, std::uint64_t& number) {
               bodies.at(call.function())();
               number = failure;
               std::snprintf(error.data(), error.size(), "it failed");
               return failure == 0;
             },
         .step_back = []() -> void* {
           ++steps_back;
           return has_something_to_give_up ? &steps_in : nullptr;
         },
         .step_in =
             [](void* state) {
               EXPECT_EQ(state, &steps_in);
               ++steps_in;
             },
         .forget = [](std::uint64_t number) { forgotten = number; }});
  }
  void TearDown() override {
    set_host({});
    pjrt::set_host_function(nullptr);
    bodies = {};
    RuntimeTest::TearDown();
  }

  // Calls the host as the plugin does.
  static void call_back(std::function<void()> callback, std::size_t index = 0) {
    bodies[index] = std::move(callback);
    HostFrame frame(index);
    EXPECT_EQ(pjrt::host_callback_handler(frame.start()), nullptr);
  }
  // Sets the size of a synchronous plugin's pool through these variables.
  static void note_pool_of(const char* pjrt_nproc, const char* nproc) {
    setenv("PJRT_NPROC", pjrt_nproc, 1);
    setenv("NPROC", nproc, 1);
    note_pool(true);
    unsetenv("PJRT_NPROC");
    unsetenv("NPROC");
  }
  static bool permits(const Program& program) { return HostCallbackScope(program).permitted(); }

  ProgramReference program_with_callbacks() {
    Signature signature = test::signature_of(kProgram);
    signature.needs_python = true;
    return loaded().compile(test::request_of(kProgram, signature)).program;
  }
};

TEST_F(HostCallbacksTest, OnlyProgramsWithCallbacksStepBack) {
  const ProgramReference plain = compile(kProgram);
  { const HostCallbackScope scope(*plain); }
  EXPECT_EQ(steps_back, 0);
  const ProgramReference calling = program_with_callbacks();
  {
    const HostCallbackScope scope(*calling);
    EXPECT_TRUE(scope.permitted());
    EXPECT_EQ(steps_back, 1);
    EXPECT_EQ(steps_in, 0);
  }
  EXPECT_EQ(steps_in, 1);
}

TEST_F(HostCallbacksTest, AThreadWithNothingToGiveUpTakesNothingBack) {
  const ProgramReference program = program_with_callbacks();
  has_something_to_give_up = false;
  { const HostCallbackScope scope(*program); }
  EXPECT_EQ(steps_back, 1);
  EXPECT_EQ(steps_in, 0);
  set_host({});
  { const HostCallbackScope scope(*program); }
  EXPECT_EQ(steps_back, 1);
}

TEST_F(HostCallbacksTest, EveryExecutionStepsBackAndIn) {
  const ProgramReference program = program_with_callbacks();
  float result = 0;
  void* const outputs[] = {&result};
  ASSERT_EQ(execute(&program->spec(), nullptr, outputs, 0), 0) << last_message();
  EXPECT_EQ(steps_back, 1);
  fake.fail("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_INTERNAL, "injected");
  EXPECT_EQ(execute(&program->spec(), nullptr, outputs, 0), -1);
  EXPECT_EQ(steps_back, 2);
  EXPECT_EQ(steps_in, 2);
}

TEST_F(HostCallbacksTest, AnAsynchronousPluginPermitsNoneInItsThreads) {
  const ProgramReference program = compile(kProgram);
  note_pool(false);
  bool permitted = true;
  call_back([&] { permitted = permits(*program); });
  EXPECT_FALSE(permitted);
  EXPECT_EQ(last_message(), kRefusal);
  EXPECT_EQ(last_error_code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(permits(*program)) << "after the callback the thread is as any other";
}

TEST_F(HostCallbacksTest, ACallbackOnTheExecutingThreadMayExecute) {
  const ProgramReference program = compile(kProgram);
  note_pool(false);
  const HostCallbackScope scope(*program);
  bool permitted = false;
  call_back([&] { permitted = permits(*program); });
  EXPECT_TRUE(permitted);
}

TEST_F(HostCallbacksTest, OneThreadOfThePoolStaysFree) {
  const ProgramReference program = compile(kProgram);
  note_pool_of("2", "8");
  std::promise<void> second_tried;
  std::promise<void> first_runs;
  bool first = false;
  bool second = true;
  call_back([&] {
    std::thread waiting([&] {
      call_back(
          [&] {
            const HostCallbackScope scope(*program);
            first = scope.permitted();
            first_runs.set_value();
            second_tried.get_future().wait();
          },
          1);
    });
    first_runs.get_future().wait();
    second = permits(*program);
    second_tried.set_value();
    waiting.join();
  });
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
  EXPECT_EQ(last_message(), kRefusal);
  // The thread is available again afterwards.
  call_back([&] { second = permits(*program) && permits(*program); });
  EXPECT_TRUE(second);
}

// An execution within an execution within a callback blocks one thread, not two.
TEST_F(HostCallbacksTest, AThreadIsCountedOnce) {
  const ProgramReference program = compile(kProgram);
  note_pool_of("2", "8");
  bool permitted = false;
  call_back([&] {
    const HostCallbackScope outer(*program);
    permitted = outer.permitted() && permits(*program);
  });
  EXPECT_TRUE(permitted);
}

TEST_F(HostCallbacksTest, ACapOnTheThreadsIsTheSizeOfThePool) {
  const ProgramReference program = compile(kProgram);
  const auto permitted = [&](std::size_t threads) {
    note_pool(true, threads);
    bool result = false;
    call_back([&] { result = permits(*program); });
    return result;
  };
  EXPECT_FALSE(permitted(1));
  EXPECT_TRUE(permitted(2));
}

TEST_F(HostCallbacksTest, TheSizeOfThePoolIsReadAsThePluginReadsIt) {
  const ProgramReference program = compile(kProgram);
  const auto permitted = [&](const char* pjrt_nproc, const char* nproc) {
    note_pool_of(pjrt_nproc, nproc);
    bool result = false;
    call_back([&] { result = permits(*program); });
    return result;
  };
  EXPECT_FALSE(permitted("1", "8"));
  EXPECT_TRUE(permitted("2", "1"));
  EXPECT_FALSE(permitted("0", "1"));
  EXPECT_TRUE(permitted("none", "8"));
}

TEST_F(HostCallbacksTest, TheFloatingPointStateOfTheHostIsItsOwn) {
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  call_back([] {
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    std::fesetround(FE_UPWARD);
  });
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
}

TEST_F(HostCallbacksTest, TheNumberOfAFailureGoesToTheThreadThatExpectsIt) {
  const ProgramReference program = program_with_callbacks();
  bodies[0] = [] {};
  failure = 7;
  HostFrame frame;
  static_cast<void>(pjrt::host_callback_handler(frame.start()));
  EXPECT_NE(frame.message(), "it failed");
  const auto ended = [&] {
    std::string message = "INTERNAL: " + frame.message();
    const HostCallbackScope scope(*program);
    { const HostCallbackScope within(*program); }
    scope.end_failure(message.data());
    return std::string(message.c_str());
  };
  EXPECT_EQ(ended(), "INTERNAL: it failed");
  EXPECT_EQ(forgotten, 7U);
  EXPECT_EQ(take_failure(), 0U);
  forgotten = 0;
  expect_failure();
  EXPECT_EQ(ended(), "INTERNAL: it failed");
  EXPECT_EQ(forgotten, 0U);
  EXPECT_EQ(take_failure(), 7U);
  EXPECT_EQ(ended(), "INTERNAL: it failed");
  EXPECT_EQ(forgotten, 7U);
}

// With a plugin that calls back on a thread of its own.
TEST_F(HostCallbacksTest, AnExecutionThatWouldNeverEndIsRefused) {
  fake.set(FAKE_PLUGIN_ASYNCHRONOUS, 1);
  const ProgramReference inner = compile(kProgram);
  const ProgramReference outer = program_with_callbacks();
  float result = 0;
  void* const outputs[] = {&result};
  static std::string message;
  bodies[0] = [&] {
    float inner_result = 0;
    void* const inner_outputs[] = {&inner_result};
    message = execute(&inner->spec(), nullptr, inner_outputs, 0) == 0 ? "" : last_message();
  };
  fake.on_execute(
      [](void* /*unused*/) {
        HostFrame frame;
        static_cast<void>(pjrt::host_callback_handler(frame.start()));
      },
      nullptr);
  EXPECT_EQ(execute(&outer->spec(), nullptr, outputs, 0), 0) << last_message();
  fake.on_execute(nullptr, nullptr);
  EXPECT_EQ(message, kRefusal);
  EXPECT_EQ(result, 4);
  EXPECT_EQ(steps_in, 1);
}

}  // namespace
}  // namespace cyxla::runtime
