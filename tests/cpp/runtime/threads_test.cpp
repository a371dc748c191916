// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/child_process.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::last_message;
using test::ProgramReference;

constexpr const char* kAdd =
    "input F32[3]\ninput F32[3]\noutput F32[3] add 0 1\noutput F32[] sum 0\n";

// Runs `function(i)` in `count` threads at once and waits for them.
template <typename Function>
void in_threads(int count, Function function) {
  std::vector<std::thread> threads;
  std::barrier start(count);
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      function(i);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// Adds `left` and `right` and checks the result; the arrays belong to the thread.
void expect_sum(const cyxla_program_spec& spec, Array<float>& left, const Array<float>& right,
                float value, int zero_copy) {
  left.assign({value, value, value});
  Array<float> added({-1, -1, -1});
  float sum = -1;
  const cyxla_input inputs[] = {left.input(PJRT_Buffer_Type_F32),
                                right.input(PJRT_Buffer_Type_F32)};
  void* const outputs[] = {added.data(), &sum};
  ASSERT_EQ(execute(&spec, inputs, outputs, zero_copy), 0) << last_message();
  ASSERT_EQ(added.values(), (std::vector<float>{value + 10, value + 20, value + 30}));
  ASSERT_EQ(sum, 3 * value);
}

class ThreadsTest : public test::RuntimeTest {
 protected:
  // Waits until `count` executions are in progress.
  void wait_until_running(std::int64_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (fake.running() != count && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(fake.running(), count);
  }
  // Executes a program without inputs and outputs.
  static int run(const ProgramReference& program) {
    return execute(&program->spec(), nullptr, nullptr, 0);
  }
};

TEST_F(ThreadsTest, ManyThreadsExecuteOneProgram) {
  const ProgramReference program = compile(kAdd);
  in_threads(8, [&](int thread) {
    Array<float> left({0, 0, 0}, thread % 2 == 0 ? 0 : 4);
    const Array<float> right({10, 20, 30});
    for (int i = 0; i < 500; ++i) {
      expect_sum(program->spec(), left, right, static_cast<float>(1000 * thread + i), i / 4 % 2);
    }
  });
}

TEST_F(ThreadsTest, ManyThreadsExecuteSeveralPrograms) {
  std::vector<ProgramReference> programs;
  for (int i = 0; i < 3; ++i) {
    programs.push_back(compile(kAdd, "program " + std::to_string(i)));
  }
  in_threads(6, [&](int thread) {
    Array<float> left({0, 0, 0});
    const Array<float> right({10, 20, 30});
    for (int i = 0; i < 500; ++i) {
      const auto program = static_cast<std::size_t>(thread + i) % programs.size();
      expect_sum(programs[program]->spec(), left, right, static_cast<float>(i), 1);
    }
  });
}

TEST_F(ThreadsTest, ManyThreadsOnAnAsynchronousPlugin) {
  fake.set(FAKE_PLUGIN_ASYNCHRONOUS, 1);
  const ProgramReference program = compile(kAdd);
  in_threads(4, [&](int /*thread*/) {
    Array<float> left({0, 0, 0});
    const Array<float> right({10, 20, 30});
    for (int i = 0; i < 200; ++i) {
      expect_sum(program->spec(), left, right, static_cast<float>(i), 1);
    }
  });
}

TEST_F(ThreadsTest, InputsMayBeSharedBetweenThreads) {
  const ProgramReference program = compile("input F32[3]\noutput F32[3] scale 0 2\n");
  const Array<float> shared({1, 2, 3});
  in_threads(4, [&](int /*thread*/) {
    for (int i = 0; i < 200; ++i) {
      const Array<float> result({0, 0, 0});
      const cyxla_input inputs[] = {shared.input(PJRT_Buffer_Type_F32)};
      void* const outputs[] = {result.data()};
      ASSERT_EQ(execute(&program->spec(), inputs, outputs, 1), 0) << last_message();
      ASSERT_EQ(result.values(), (std::vector<float>{2, 4, 6}));
    }
  });
}

// The next thread reuses an ended thread's context.
TEST_F(ThreadsTest, ThreadsThatEndLeaveNothingToPileUp) {
  const ProgramReference program = compile(kAdd);
  for (int round = 0; round < 30; ++round) {
    in_threads(3, [&](int /*thread*/) {
      Array<float> left({0, 0, 0});
      const Array<float> right({10, 20, 30});
      for (int i = 0; i < 4; ++i) {
        expect_sum(program->spec(), left, right, static_cast<float>(i), 1);
      }
    });
  }
  // At most three threads were alive at once, each with at most five views for each of two inputs.
  EXPECT_LE(fake.live(FAKE_PLUGIN_VIEW), 3 * 2 * 5) << fake.live_by_kind();
}

TEST_F(ThreadsTest, ProgramsAreCompiledAndDroppedWhileOthersRun) {
  loaded();
  in_threads(4, [&](int thread) {
    Array<float> left({0, 0, 0});
    const Array<float> right({10, 20, 30});
    for (int i = 0; i < 40; ++i) {
      const ProgramReference program = compile(kAdd, "program of thread " + std::to_string(thread));
      for (int call = 0; call < 5; ++call) {
        expect_sum(program->spec(), left, right, static_cast<float>(i), 1);
      }
    }
  });
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 0) << fake.live_by_kind();
}

TEST_F(ThreadsTest, ShutdownWaitsForCallsAndRefusesNewOnes) {
  const ProgramReference program = compile("");
  const ProgramReference other = compile("");
  fake.set(FAKE_PLUGIN_HOLD, 1);
  std::vector<std::thread> inside;
  for (int i = 0; i < 3; ++i) {
    inside.emplace_back([&] { EXPECT_EQ(run(program), 0) << last_message(); });
  }
  wait_until_running(3);
  std::atomic<bool> closed = false;
  std::thread closing([&] {
    Runtime::shut_down();
    closed = true;
  });
  // Once shutting down has begun, new calls of every program are refused.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (cyxla_call* prepared = prepare(&other->spec(), nullptr, nullptr, 0)) {
    discard(prepared);
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  }
  EXPECT_EQ(last_message(), "cannot execute the program f: the runtime is shut down");
  EXPECT_EQ(run(other), -1);
  EXPECT_EQ(last_message(), "cannot execute the program f: the runtime is shut down");
  EXPECT_FALSE(closed);
  EXPECT_EQ(fake.running(), 3);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_CLIENT), 1);
  fake.set(FAKE_PLUGIN_HOLD, 0);
  for (std::thread& thread : inside) {
    thread.join();
  }
  closing.join();
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
  EXPECT_EQ(run(program), -1);
}

// A shutdown at any moment of threads that call in a loop: each call works or is refused.
TEST_F(ThreadsTest, ShutdownWhileThreadsExecute) {
  const ProgramReference program = compile(kAdd);
  std::atomic<int> working = 0;
  std::thread closing([&] {
    while (working < 4) {
      std::this_thread::yield();
    }
    Runtime::shut_down();
    EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
  });
  in_threads(4, [&](int /*thread*/) {
    Array<float> left({1, 1, 1});
    const Array<float> right({10, 20, 30});
    const cyxla_input inputs[] = {left.input(PJRT_Buffer_Type_F32),
                                  right.input(PJRT_Buffer_Type_F32)};
    int calls = 0;
    while (true) {
      const Array<float> added({-1, -1, -1});
      void* const outputs[] = {added.data(), nullptr};
      if (execute(&program->spec(), inputs, outputs, 1) != 0) {
        break;
      }
      ASSERT_EQ(added.values(), (std::vector<float>{11, 21, 31}));
      working += ++calls == 10 ? 1 : 0;
    }
    EXPECT_EQ(last_message(), "cannot execute the program f: the runtime is shut down");
    EXPECT_GE(calls, 10);
  });
  closing.join();
}

TEST_F(ThreadsTest, PreparedCallsMeetAShutdown) {
  const ProgramReference program = compile(kAdd);
  std::atomic<int> working = 0;
  std::thread closing([&] {
    while (working < 4) {
      std::this_thread::yield();
    }
    Runtime::shut_down();
  });
  in_threads(4, [&](int /*thread*/) {
    const Array<float> left({1, 1, 1});
    const Array<float> right({10, 20, 30});
    const Array<float> added({-1, -1, -1});
    const cyxla_input inputs[] = {left.input(PJRT_Buffer_Type_F32),
                                  right.input(PJRT_Buffer_Type_F32)};
    void* const outputs[] = {added.data(), nullptr};
    ++working;
    while (cyxla_call* prepared = prepare(&program->spec(), inputs, outputs, 1)) {
      if (call(prepared) == 0) {
        EXPECT_EQ(added.values(), (std::vector<float>{11, 21, 31}));
      }
      discard(prepared);
    }
    EXPECT_EQ(last_message(), "cannot execute the program f: the runtime is shut down");
  });
  closing.join();
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
}

// A prepared call is discarded while another thread shuts down: its views are destroyed before the
// client.
TEST_F(ThreadsTest, APreparedCallIsDiscardedDuringShutdown) {
  const ProgramReference program = compile(kAdd);
  const Array<float> values({1, 1, 1});
  const cyxla_input inputs[] = {values.input(PJRT_Buffer_Type_F32),
                                values.input(PJRT_Buffer_Type_F32)};
  void* const outputs[] = {nullptr, nullptr};
  cyxla_call* prepared = prepare(&program->spec(), inputs, outputs, 1);
  ASSERT_EQ(call(prepared), 0) << last_message();
  fake.set(FAKE_PLUGIN_DESTROY_DELAY_MS, 50);
  std::thread discarding([&] { discard(prepared); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Runtime::shut_down();
  discarding.join();
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
}

// A program's execution calls the same program on the same thread, as a callback may.
TEST_F(ThreadsTest, ACallFromWithinACallOfTheSameProgram) {
  const ProgramReference program = compile(kAdd);
  struct Nested {
    const cyxla_program_spec* spec;
    int depth = 0;
  } nested{&program->spec()};
  fake.on_execute(
      [](void* user_arg) {
        auto& state = *static_cast<Nested*>(user_arg);
        if (++state.depth < 4) {
          Array<float> left({0, 0, 0});
          expect_sum(*state.spec, left, Array<float>({10, 20, 30}), static_cast<float>(state.depth),
                     1);
        }
      },
      &nested);
  Array<float> left({0, 0, 0});
  expect_sum(program->spec(), left, Array<float>({10, 20, 30}), 7, 1);
  EXPECT_EQ(nested.depth, 4);
  fake.on_execute(nullptr, nullptr);
  const std::int64_t live = fake.live();
  expect_sum(program->spec(), left, Array<float>({10, 20, 30}), 8, 1);
  EXPECT_LE(fake.live(), live + 2) << fake.live_by_kind();
}

// The destructors of a thread's own objects may execute programs after cyxla's own destructor ran.
TEST_F(ThreadsTest, ACallFromAThreadThatIsTornDown) {
  const ProgramReference program = compile("output F32[] fill 6\n");
  struct ExecutesLate {
    const cyxla_program_spec* spec = nullptr;
    ~ExecutesLate() {
      float result = 0;
      void* const outputs[] = {&result};
      if (execute(spec, nullptr, outputs, 1) == 0) {
        EXPECT_EQ(result, 6);
      } else {
        EXPECT_NE(last_message(), "");
      }
    }
  };
  std::thread([&] {
    thread_local ExecutesLate made_first;
    made_first.spec = &program->spec();
    float result = 0;
    void* const outputs[] = {&result};
    EXPECT_EQ(execute(&program->spec(), nullptr, outputs, 1), 0) << last_message();
  }).join();
}

}  // namespace
}  // namespace cyxla::runtime
