// SPDX-License-Identifier: Apache-2.0
#include "direct/canary.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace cyxla::direct {
namespace {

#if defined(__SANITIZE_THREAD__)

TEST(RunInChild, NeverForksUnderThreadSanitizer) {
  EXPECT_EQ(run_in_child([] { return true; }, kCanaryTimeLimit),
            "no child process can be made under ThreadSanitizer");
}

#else

TEST(RunInChild, TellsHowTheWorkEnded) {
  EXPECT_EQ(run_in_child([] { return true; }, kCanaryTimeLimit), "");
  EXPECT_EQ(run_in_child([] { return false; }, kCanaryTimeLimit),
            "the child process left with status 1");
}

TEST(RunInChild, SurvivesACrash) {
  const auto crash = [] { return raise(SIGSEGV) == 0; };
  EXPECT_EQ(run_in_child(crash, kCanaryTimeLimit),
            "the child process was ended by signal " + std::to_string(SIGSEGV));
}

// With SIGCHLD ignored no status is kept for anybody.
TEST(RunInChild, NeedsNoStatusOfTheChild) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(run_in_child([] { return true; }, kCanaryTimeLimit), "");
  EXPECT_EQ(run_in_child([] { return false; }, kCanaryTimeLimit),
            "the child process ended early, and its status was lost");
  EXPECT_EQ(run_in_child([] { return raise(SIGSEGV) == 0; }, kCanaryTimeLimit),
            "the child process ended early, and its status was lost");
  std::signal(SIGCHLD, before);
}

TEST(RunInChild, KillsWorkThatDoesNotEnd) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_in_child(
                [] {
                  for (;;) {
                    pause();
                  }
                  return true;
                },
                std::chrono::milliseconds(100)),
            "the child process did not end within 100 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(RunInChild, LeavesNoChildBehindAndNoTraceInThisProcess) {
  static int changed = 0;
  static bool exited = false;
  std::atexit([] { exited = true; });
  EXPECT_EQ(run_in_child([] { return ++changed == 1; }, kCanaryTimeLimit), "");
  EXPECT_EQ(changed, 0);
  EXPECT_FALSE(exited);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

#endif

}  // namespace
}  // namespace cyxla::direct
