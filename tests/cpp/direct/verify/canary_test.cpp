// SPDX-License-Identifier: Apache-2.0
#include "direct/verify/canary.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>

namespace cyxla::direct {
namespace {

#if defined(__SANITIZE_THREAD__)

TEST(RunInChild, NeverForksUnderThreadSanitizer) {
  EXPECT_EQ(run_in_child([] { return true; }),
            "cannot create a child process under ThreadSanitizer");
}

#else

TEST(RunInChild, TellsHowTheWorkEnded) {
  EXPECT_EQ(run_in_child([] { return true; }), "");
  EXPECT_EQ(run_in_child([] { return false; }), "the child process exited with status 1");
}

TEST(RunInChild, SurvivesACrash) {
  const auto crash = [] { return raise(SIGSEGV) == 0; };
  EXPECT_EQ(run_in_child(crash),
            "the child process was killed by signal " + std::to_string(SIGSEGV));
}

// With SIGCHLD ignored no status is kept for anybody.
TEST(RunInChild, NeedsNoStatusOfTheChild) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(run_in_child([] { return true; }), "");
  EXPECT_EQ(run_in_child([] { return false; }),
            "the child process ended early, and its status was lost");
  EXPECT_EQ(run_in_child([] { return raise(SIGSEGV) == 0; }),
            "the child process ended early, and its status was lost");
  std::signal(SIGCHLD, before);
}

TEST(RunInChild, KillsWorkThatDoesNotEnd) {
  const auto wait = [] {
    for (;;) {
      pause();
    }
    return true;
  };
  EXPECT_EQ(run_in_child(wait, {.wall_time = std::chrono::milliseconds(100)}),
            "the child process did not end within 100 ms");
}

TEST(RunInChild, LimitsTheProcessorTimeOfTheChild) {
  const auto compute = [] {
    for (std::atomic<int> count = 0;; ++count) {
    }
    return true;
  };
  EXPECT_EQ(run_in_child(compute, {.processor_time = std::chrono::seconds(1)}),
            "the child process used more than 1 s of processor time");
  // Nothing of the limit is left here.
  rlimit limits = {};
  getrlimit(RLIMIT_CPU, &limits);
  EXPECT_EQ(limits.rlim_cur, RLIM_INFINITY);
}

TEST(RunInChild, LeavesNoChildBehindAndNoTraceInThisProcess) {
  static int changed = 0;
  static bool exited = false;
  std::atexit([] { exited = true; });
  EXPECT_EQ(run_in_child([] { return ++changed == 1; }), "");
  EXPECT_EQ(changed, 0);
  EXPECT_FALSE(exited);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

#endif

}  // namespace
}  // namespace cyxla::direct
