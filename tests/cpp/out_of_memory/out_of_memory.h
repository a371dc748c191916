// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <new>
#include <string>

#include "out_of_memory/failing_memory.h"
#include "support/child_process.h"
#include "support/runtime_test.h"
#include "support/sample_call.h"

namespace cyxla::test {

// Every allocation of cyxla's own code fails once, for every operation. Set-up operations then
// throw std::bad_alloc, and calls return -1 with a message. Nothing leaks, and the next attempt
// works.
class OutOfMemoryTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    // Allocates the thread's message buffer, which it keeps.
    runtime::record_error(ErrorCode::kInternal, "nothing failed yet");
    fake.inside()();
    FailingMemory::set_inside_plugin(fake.inside());
  }
  void TearDown() override {
    FailingMemory::set_inside_plugin(nullptr);
    RuntimeTest::TearDown();
  }

  struct Attempt {
    std::function<void()> before = [] {};
    std::function<bool()> act;  // returns success; a failing call records its message
    // Returns what is wrong after act().
    std::function<std::string()> check = [] { return std::string(); };
    std::function<void()> after = [] {};
  };

  // Returns "" for success, otherwise the failure and its reason.
  static std::string try_once(const Attempt& attempt, int nth, bool& failed) {
    std::string outcome;
    outcome.reserve(200);
    bool is_bad_alloc = false;
    bool succeeded = false;
    FailingMemory::fail(nth);
    try {
      succeeded = attempt.act();
      failed = FailingMemory::failed();
    } catch (const std::bad_alloc&) {
      failed = FailingMemory::failed();
      is_bad_alloc = true;
    } catch (const std::exception& error) {
      failed = FailingMemory::failed();
      FailingMemory::fail(0);
      return std::string("another exception: ") + error.what();
    }
    FailingMemory::fail(0);
    return is_bad_alloc ? "out of memory" : succeeded ? attempt.check() : last_message();
  }

  // Fails the first, second, ... allocation until an attempt has none left to fail.
  void sweep(const char* operation, const Attempt& attempt, int least) {
    bool failed = true;
    int positions = 0;
    int reported = 0;
    const auto run = [&](int nth) {
      const std::int64_t live = fake.live();
      attempt.before();
      std::string outcome = try_once(attempt, nth, failed);
      if (failed) {
        ++positions;
        reported += outcome.empty() ? 0 : 1;
        EXPECT_TRUE(outcome.empty() || outcome.find("out of memory") != std::string::npos)
            << operation << " " << nth << ": " << outcome;
      } else {
        EXPECT_EQ(outcome, "") << operation << " " << nth;
      }
      bool failed_again = false;
      EXPECT_EQ(try_once(attempt, 0, failed_again), "") << operation << " after " << nth;
      std::string().swap(outcome);  // so that `after` can count blocks
      attempt.after();
      EXPECT_EQ(fake.live(), live) << operation << " " << nth << ": " << fake.live_by_kind();
      EXPECT_EQ(fake.violations(), 0U) << fake.recorded(FAKE_PLUGIN_VIOLATION);
    };
    for (int i = 0; i < 3; ++i) {
      run(0);  // what is allocated once and kept
    }
    for (int nth = 1; (failed || nth == 1) && !HasFailure(); ++nth) {
      const std::int64_t blocks = FailingMemory::blocks();
      run(nth);
      EXPECT_EQ(FailingMemory::blocks(), blocks) << operation << " " << nth;
    }
    std::printf("faults: %s_without_memory: %d positions, %d reported, %d tolerated\n", operation,
                positions, reported, positions - reported);
    EXPECT_GE(positions, least);
    EXPECT_EQ(reported, positions);
  }

  // As sweep(), but each attempt runs in its own process, for what a process does only once. `once`
  // gets the position and returns "reported", "not reached" or what was wrong.
  template <typename Once>
  void sweep_in_children(const char* operation, const Once& once, int least) {
    int positions = 0;
    std::string outcome;
    for (int nth = 1; outcome != "not reached" && !HasFailure(); ++nth) {
      outcome = in_child([&] { return std::string(once(nth)); });
      if (outcome != "not reached") {
        EXPECT_EQ(outcome, "reported") << nth;
        ++positions;
      }
    }
    std::printf("faults: %s_without_memory: %d positions, %d reported, 0 tolerated\n", operation,
                positions, positions);
    EXPECT_GE(positions, least);
  }

  SampleCall call_;
};

}  // namespace cyxla::test
