// SPDX-License-Identifier: Apache-2.0
// Programs whose last reference is dropped during calls: the last call to return destroys them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/asymmetric_fence.h"
#include "support/child_process.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::last_message;
using test::ProgramReference;

class DroppedProgramsTest : public test::RuntimeTest {
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
  std::int64_t live_programs() const { return fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE); }
};

// The last reference is dropped while another thread executes: the program lives until that call
// returns.
TEST_F(DroppedProgramsTest, AProgramIsDroppedWhileAnotherThreadIsInIt) {
  ProgramReference program = compile("output F32[] fill 1\n");
  fake.set(FAKE_PLUGIN_HOLD, 1);
  std::thread inside([spec = &program->spec()] {
    float result = 0;
    void* const outputs[] = {&result};
    EXPECT_EQ(execute(spec, nullptr, outputs, 1), 0);
    EXPECT_EQ(result, 1);
  });
  wait_until_running(1);
  program.reset();
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 1);
  fake.set(FAKE_PLUGIN_HOLD, 0);
  inside.join();
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 0) << fake.live_by_kind();
}

TEST_F(DroppedProgramsTest, ShutdownAlsoWaitsForDroppedPrograms) {
  ProgramReference program = compile("output F32[] fill 1\n");
  fake.set(FAKE_PLUGIN_HOLD, 1);
  std::thread inside([spec = &program->spec()] {
    void* const outputs[] = {nullptr};
    EXPECT_EQ(execute(spec, nullptr, outputs, 1), 0);
  });
  wait_until_running(1);
  program.reset();
  std::thread closing([] { Runtime::shut_down(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(fake.live(FAKE_PLUGIN_CLIENT), 1);
  fake.set(FAKE_PLUGIN_HOLD, 0);
  inside.join();
  closing.join();
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
}

// A call drops the last reference to its own program.
TEST_F(DroppedProgramsTest, AProgramIsDroppedFromWithinItsOwnCall) {
  ProgramReference program = compile("");
  const cyxla_program_spec* spec = &program->spec();
  fake.on_execute([](void* held) { static_cast<ProgramReference*>(held)->reset(); }, &program);
  EXPECT_EQ(execute(spec, nullptr, nullptr, 0), 0) << last_message();
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 0) << fake.live_by_kind();
  fake.on_execute(nullptr, nullptr);
}

// A callback drops a program while another thread shuts the runtime down: they must not deadlock.
// In a child process, which is killed if they do.
TEST_F(DroppedProgramsTest, AProgramIsDroppedFromWithinACallDuringShutdown) {
  EXPECT_EQ(test::in_child([&]() -> std::string {
              const ProgramReference program = compile("");
              ProgramReference other = compile("");
              fake.on_execute(
                  [](void* held) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // shutdown waits
                    static_cast<ProgramReference*>(held)->reset();
                  },
                  &other);
              fake.set(FAKE_PLUGIN_HOLD, 1);
              int result = -1;
              std::thread inside([&] { result = run(program); });
              wait_until_running(1);
              std::thread closing([] { Runtime::shut_down(); });
              fake.set(FAKE_PLUGIN_HOLD, 0);
              inside.join();
              closing.join();
              return result == 0 && fake.live() == 0 && fake.violations() == 0
                         ? "done"
                         : fake.live_by_kind() + fake.recorded(FAKE_PLUGIN_VIOLATION);
            }),
            "done");
}

// The last call in flight destroys the program; calls of other programs do not.
TEST_F(DroppedProgramsTest, TheLastOfSeveralCallsDestroysTheProgram) {
  ProgramReference program = compile("", "dropped");
  const ProgramReference other = compile("", "other");
  std::atomic<int> leave = 0;
  struct Call {
    std::atomic<int>* leave;
    std::atomic<int> entered = 0;
  } state{&leave};
  fake.on_execute(
      [](void* user_arg) {
        auto& call = *static_cast<Call*>(user_arg);
        const int number = ++call.entered;
        while (*call.leave < number) {
          std::this_thread::yield();
        }
      },
      &state);
  std::vector<std::thread> inside;
  for (int i = 0; i < 3; ++i) {
    inside.emplace_back([spec = &program->spec()] {
      EXPECT_EQ(execute(spec, nullptr, nullptr, 0), 0) << last_message();
    });
  }
  while (state.entered < 3) {
    std::this_thread::yield();
  }
  program.reset();
  const auto wait_for = [&](std::int64_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (fake.running() != count && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  };
  leave = 2;
  wait_for(1);
  EXPECT_EQ(live_programs(), 2);
  state.entered = -1000;  // the next calls return at once
  EXPECT_EQ(run(other), 0) << last_message();
  EXPECT_EQ(live_programs(), 2) << "a call of another program destroyed one that is in flight";
  leave = 3;
  for (std::thread& thread : inside) {
    thread.join();
  }
  EXPECT_EQ(live_programs(), 1) << fake.live_by_kind();
  fake.on_execute(nullptr, nullptr);
}

// A prepared call holds a reference, so discarding it drops the program.
TEST_F(DroppedProgramsTest, DiscardingTheLastPreparedCallDestroysTheProgram) {
  ProgramReference program = compile("");
  cyxla_call* prepared = prepare(&program->spec(), nullptr, nullptr, 0);
  program.reset();
  EXPECT_EQ(call(prepared), 0) << last_message();
  EXPECT_EQ(live_programs(), 1);
  discard(prepared);
  EXPECT_EQ(live_programs(), 0) << fake.live_by_kind();
}

// The reference is dropped at any moment of other threads' calls, which hold none: the last call to
// return destroys the program, and no call uses it afterwards.
TEST_F(DroppedProgramsTest, DropsRaceWithTheEndsOfCalls) {
  constexpr int kThreads = 3;
  std::atomic<int> entered = 0;
  fake.on_execute([](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &entered);
  loaded();
  for (const bool fences_are_real : {false, true}) {
    if (fences_are_real) {
      asymmetric_fence::light_is_real = true;  // as on a system without membarrier
    }
    for (int round = 0; round < 300 && !HasFailure(); ++round) {
      entered = 0;
      ProgramReference program = compile("");
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([spec = &program->spec()] {
          EXPECT_EQ(execute(spec, nullptr, nullptr, 0), 0) << last_message();
        });
      }
      while (entered < kThreads) {
        std::this_thread::yield();
      }
      for (int spin = 0; spin < round / 10; ++spin) {
        std::this_thread::yield();
      }
      program.reset();
      for (std::thread& thread : threads) {
        thread.join();
      }
      EXPECT_EQ(live_programs(), 0) << "round " << round << ", " << fake.live_by_kind();
    }
  }
  fake.on_execute(nullptr, nullptr);
}

// A child that was forked from within a call of a dropped program leaves the plugin's objects
// alone.
TEST_F(DroppedProgramsTest, AForkedChildDestroysNothingWhenItsCallReturns) {
  static ProgramReference program;
  static std::atomic<pid_t> child;
  program = compile("");
  child = -1;
  fake.on_execute(
      [](void* /*unused*/) {
        program.reset();
        child = fork();
      },
      nullptr);
  const cyxla_program_spec* spec = &program->spec();
  const int result = execute(spec, nullptr, nullptr, 0);
  if (child == 0) {
    _exit(live_programs() == 1 ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(live_programs(), 0);
  fake.on_execute(nullptr, nullptr);
}

}  // namespace
}  // namespace cyxla::runtime
