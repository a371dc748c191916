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

// What happens when there is no memory: each request of cyxla's own code fails once, for every
// operation. Set-up operations throw std::bad_alloc, calls return -1 with a message; nothing is
// left behind, and the next attempt works.
class OutOfMemoryTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    // The thread keeps the memory of its first message.
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
    std::function<bool()> act;  // whether it succeeded; a failing call has recorded its message
    std::function<std::string()> check = [] { return std::string(); };  // what is wrong after it
    std::function<void()> after = [] {};
  };

  // What became of an attempt: "", or that and why it failed.
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

  // Fails the first, second, ... request until there are no more.
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
      run(0);  // what is made once and kept
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

  // Fails the first, second, ... request until there are no more, each in a process of its own: for
  // what is done once in a process. `once` gets the position and gives "reported", "not reached" or
  // what was wrong.
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
