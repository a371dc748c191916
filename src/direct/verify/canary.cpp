// SPDX-License-Identifier: Apache-2.0
#include "direct/verify/canary.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>

#include "direct/verify/shared_word.h"

namespace cyxla::direct {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kMayFork = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kMayFork = false;
#else
constexpr bool kMayFork = true;
#endif
#else
constexpr bool kMayFork = true;
#endif

constexpr int kWorkFailed = 1;
constexpr std::uint64_t kSucceeded = 1;

// At the limit, the kernel sends SIGXCPU.
void limit_processor_time(std::chrono::seconds limit) noexcept {
  rlimit limits = {};
  getrlimit(RLIMIT_CPU, &limits);
  limits.rlim_cur = std::min(limits.rlim_max, static_cast<rlim_t>(limit.count()));
  setrlimit(RLIMIT_CPU, &limits);
}

[[noreturn]] void work_in_child(const std::function<bool()>& work, std::chrono::seconds limit,
                                SharedWord& verdict) noexcept {
  // The process's signal handlers would report a crash of the child as its own.
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM, SIGXCPU}) {
    std::signal(number, SIG_DFL);
  }
  const rlimit no_core_file = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core_file);
  limit_processor_time(limit);
  const bool succeeded = work();
  if (succeeded) {
    verdict.set_bits(kSucceeded);
  }
  _exit(succeeded ? 0 : kWorkFailed);
}

std::string reason_of(int status, std::chrono::seconds limit) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
    return "the child process used more than " + std::to_string(limit.count()) +
           " s of processor time";
  }
  if (WIFSIGNALED(status)) {
    return "the child process was killed by signal " + std::to_string(WTERMSIG(status));
  }
  if (WEXITSTATUS(status) != 0) {
    return "the child process exited with status " + std::to_string(WEXITSTATUS(status));
  }
  return {};
}

// Returns the child's id when it has ended, 0 while it runs, and -1 with errno on failure.
pid_t poll_child(pid_t child, int& status, int options) {
  pid_t result = 0;
  do {
    result = waitpid(child, &status, options);
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

std::string run_in_child(const std::function<bool()>& work, const ChildLimits& limits) {
  if (!kMayFork) {
    return "cannot create a child process under ThreadSanitizer";
  }
  // The process may lose the child's status: by ignoring SIGCHLD, or by a wait for any child on
  // another thread.
  SharedWord verdict;
  const pid_t child = fork();
  if (child < 0) {
    return std::string("cannot create a child process: ") + std::strerror(errno);
  }
  if (child == 0) {
    work_in_child(work, limits.processor_time, verdict);
  }
  const auto deadline = std::chrono::steady_clock::now() + limits.wall_time;
  // Most children need less than a millisecond.
  std::chrono::microseconds pause{50};
  int status = 0;
  for (;;) {
    const pid_t ended = poll_child(child, status, WNOHANG);
    if (ended == child) {
      return reason_of(status, limits.processor_time);
    }
    if (ended < 0 && errno == ECHILD) {
      return verdict.value() == kSucceeded
                 ? ""
                 : "the child process ended early, and its status was lost";
    }
    if (ended < 0) {
      return std::string("cannot wait for the child process: ") + std::strerror(errno);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      kill(child, SIGKILL);
      poll_child(child, status, 0);
      return "the child process did not end within " + std::to_string(limits.wall_time.count()) +
             " ms";
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds{2000});
  }
}

}  // namespace cyxla::direct
