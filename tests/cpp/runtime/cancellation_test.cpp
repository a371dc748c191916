// SPDX-License-Identifier: Apache-2.0
// Threads that are cancelled (pthread_cancel) while they execute: the call completes, and the
// thread ends at its next cancellation point.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/host_callbacks.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::last_message;
using test::ProgramReference;

class CancellationTest : public test::RuntimeTest {
 protected:
  // Executes `program` on a thread, cancels it once `may_cancel` returns true, and then calls
  // `cancelled`. Returns how the thread ended.
  template <typename MayCancel, typename Cancelled>
  std::string cancel(const ProgramReference& program, MayCancel may_cancel, Cancelled cancelled) {
    state_.spec = &program->spec();
    state_.result = -2;
    pthread_t thread = {};
    const auto start = [](void* state) -> void* {
      auto& own = *static_cast<State*>(state);
      own.result = execute(own.spec, nullptr, nullptr, 0);
      pthread_testcancel();
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, start, &state_) != 0) {
      return "no thread";
    }
    while (!may_cancel()) {
      std::this_thread::yield();
    }
    EXPECT_EQ(pthread_cancel(thread), 0);
    cancelled();
    void* ended = nullptr;
    EXPECT_EQ(pthread_join(thread, &ended), 0);
    return std::string(ended == PTHREAD_CANCELED ? "cancelled" : "ended") +
           (state_.result == 0 ? " after the call" : " without the call's result");
  }

  struct State {
    const cyxla_program_spec* spec = nullptr;
    std::atomic<int> result = 0;
  } state_;
};

TEST_F(CancellationTest, InACallbackActsAfterTheCall) {
  const ProgramReference program = compile("");
  static std::atomic<bool> is_inside;
  static std::atomic<bool> is_cancelled;
  is_inside = is_cancelled = false;
  fake.on_execute(
      [](void* /*unused*/) {
        is_inside = true;
        while (!is_cancelled) {
          std::this_thread::yield();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(1));  // a cancellation point
      },
      nullptr);
  EXPECT_EQ(cancel(
                program, [] { return is_inside.load(); }, [] { is_cancelled = true; }),
            "cancelled after the call");
  fake.on_execute(nullptr, nullptr);
  EXPECT_EQ(execute(&program->spec(), nullptr, nullptr, 0), 0) << last_message();
}

// As many executions with callbacks are in flight as the plugin allows.
TEST_F(CancellationTest, WhileWaitingForAnotherExecutionActsAfterTheCall) {
  Signature signature = test::signature_of("");
  signature.needs_python = true;
  const ProgramReference program = loaded().compile(test::request_of("", signature)).program;
  std::vector<std::unique_ptr<HostCallbackScope>> in_flight;
  do {
    in_flight.push_back(std::make_unique<HostCallbackScope>(*program));
  } while (in_flight.back()->permitted());
  EXPECT_EQ(cancel(
                program, [] { return true; },
                [&] {
                  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it waits
                  while (!in_flight.empty()) {
                    in_flight.pop_back();
                  }
                }),
            "cancelled after the call");
  EXPECT_EQ(execute(&program->spec(), nullptr, nullptr, 0), 0) << last_message();
}

}  // namespace
}  // namespace cyxla::runtime
