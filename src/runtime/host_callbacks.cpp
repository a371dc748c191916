// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_callbacks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/plugin_scope.h"
#include "base/scope_guard.h"
#include "runtime/error_log.h"
#include "runtime/thread_state.h"

namespace cyxla::runtime {
namespace {

Host the_host = {};  // set before any program that needs it exists
std::atomic<int> waiting_pool_threads{0};

// Encloses the number of a failure in front of its text, because only the text passes through the
// plugin.
constexpr char kMark = '\x1f';

// How many threads of the pool may wait for others.
std::atomic<int> may_wait{0};

// Executions that call the host: one less than XLA:CPU allows in flight at once.
constexpr int kMaxHostExecutions = 31;
struct HostExecutions {
  std::mutex mutex;
  std::condition_variable ended;
  int in_flight = 0;
};
// Never destroyed: threads may wait while the process exits.
HostExecutions& host_executions = *new HostExecutions;

// The number from which XLA derives the size of its pools.
int pool_threads(std::optional<std::size_t> cap) noexcept {
  if (cap) {
    return static_cast<int>(*cap);
  }
  for (const char* name : {"PJRT_NPROC", "NPROC"}) {
    const char* const value = std::getenv(name);
    if (const int count = value == nullptr ? 0 : std::atoi(value); count > 0) {
      return count;
    }
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

void mark_failure(std::uint64_t failure, pjrt::HostCallError& error) noexcept {
  std::array<char, 24> mark;
  const auto length = static_cast<std::size_t>(
      std::snprintf(mark.data(), mark.size(), "%c%" PRIu64 "%c", kMark, failure, kMark));
  std::copy_backward(error.begin(), error.end() - static_cast<std::ptrdiff_t>(length), error.end());
  std::copy_n(mark.begin(), length, error.begin());
  error.back() = '\0';
}

bool call_host(const pjrt::HostCall& call, pjrt::HostCallError& error) {
  const bool outer = thread_state.in_plugin_thread;
  thread_state.in_plugin_thread = outer || thread_state.executions == 0;
  const ScopeGuard restore([outer]() noexcept { thread_state.in_plugin_thread = outer; });
  // Changes that the host makes to the floating-point or cancellation state must not affect the
  // rest of the program.
  const PluginScope plugin_scope;
  std::uint64_t failure = 0;
  if (the_host.call(call, error, failure)) {
    return true;
  }
  mark_failure(failure, error);
  return false;
}

}  // namespace

void set_host(const Host& host) noexcept {
  the_host = host;
  pjrt::set_host_function(call_host);
}

void note_pool(bool is_synchronous, std::optional<std::size_t> threads) noexcept {
  may_wait.store(is_synchronous ? pool_threads(threads) - 1 : 0, std::memory_order_relaxed);
}

void expect_failure() noexcept {
  thread_state.failure_expected = true;
  if (thread_state.failures != nullptr) {
    thread_state.failures->host_failure = 0;
  }
}

std::uint64_t take_failure() noexcept {
  thread_state.failure_expected = false;
  ThreadFailures* const failures = thread_state.failures;
  return failures == nullptr ? 0 : std::exchange(failures->host_failure, 0);
}

HostCallbackScope::HostCallbackScope(const Program& program) noexcept
    : failure_expected_(thread_state.failure_expected) {
  thread_state.failure_expected = false;
  ++thread_state.executions;
  const bool calls_host = program.signature().needs_python;
  if (calls_host && the_host.step_back != nullptr) {
    stepped_back_ = the_host.step_back();
  }
  if (thread_state.in_plugin_thread && thread_state.executions == 1) {
    wait_in_pool(program);
  }
  if (calls_host && permitted_) {
    begin_host_execution(program);
  }
}

void HostCallbackScope::wait_in_pool(const Program& program) noexcept {
  waits_in_pool_ = true;
  permitted_ = waiting_pool_threads.fetch_add(1, std::memory_order_acq_rel) <
               may_wait.load(std::memory_order_relaxed);
  if (!permitted_) {
    record_error(ErrorCode::kUnsupported,
                 "cannot execute the program %.200s from within a host callback: it runs on a "
                 "thread of the plugin's pool, which would wait for itself; execute it before or "
                 "after the program with the callback, or directly (route='direct')",
                 program.signature().name.c_str());
  }
}

void HostCallbackScope::begin_host_execution(const Program& program) noexcept {
  const bool in_callback = thread_state.in_plugin_thread || thread_state.executions > 1;
  std::unique_lock lock(host_executions.mutex);
  if (!in_callback) {
    host_executions.ended.wait(lock, [] { return host_executions.in_flight < kMaxHostExecutions; });
  }
  is_host_execution_ = permitted_ = host_executions.in_flight < kMaxHostExecutions;
  if (is_host_execution_) {
    ++host_executions.in_flight;
    return;
  }
  lock.unlock();
  record_error(ErrorCode::kUnsupported,
               "cannot execute the program %.200s from within a host callback: it calls the host "
               "itself, and %d executions that do so are already in flight, the most that the "
               "plugin allows; execute it before or after the program with the callback, or from "
               "fewer threads or callbacks within callbacks",
               program.signature().name.c_str(), kMaxHostExecutions);
}

HostCallbackScope::~HostCallbackScope() {
  --thread_state.executions;
  if (is_host_execution_) {
    {
      const std::lock_guard lock(host_executions.mutex);
      --host_executions.in_flight;
    }
    host_executions.ended.notify_one();
  }
  if (stepped_back_ != nullptr) {
    the_host.step_in(stepped_back_);
  }
  if (waits_in_pool_) {
    waiting_pool_threads.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void HostCallbackScope::end_failure(char* message) const noexcept {
  char* const mark = std::strchr(message, kMark);
  char* const end = mark == nullptr ? nullptr : std::strchr(mark + 1, kMark);
  if (end == nullptr) {
    return;
  }
  const std::uint64_t failure = std::strtoull(mark + 1, nullptr, 10);
  std::memmove(mark, end + 1, std::strlen(end + 1) + 1);
  ThreadFailures* const failures = failure_expected_ ? thread_failures() : nullptr;
  if (failures != nullptr) {
    failures->host_failure = failure;
  } else if (failure != 0) {
    the_host.forget(failure);
  }
}

}  // namespace cyxla::runtime
