// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_callbacks.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/scope_guard.h"
#include "runtime/error_log.h"

namespace cyxla::runtime {
namespace {

Host the_host = {};  // set before any program that needs it exists
std::atomic<int> waiting_pool_threads{0};

thread_local int executions = 0;             // of this thread, one within the other
thread_local bool in_plugin_thread = false;  // a host callback runs on this thread of the plugin's

// How many threads of the pool may wait for others.
std::atomic<int> may_wait{0};

// What XLA sizes its pools by.
int pool_threads() noexcept {
  for (const char* name : {"PJRT_NPROC", "NPROC"}) {
    const char* const value = std::getenv(name);
    if (const int count = value == nullptr ? 0 : std::atoi(value); count > 0) {
      return count;
    }
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

bool call_host(const pjrt::HostCall& call, pjrt::HostCallError& error) {
  const bool outer = in_plugin_thread;
  in_plugin_thread = outer || executions == 0;
  const ScopeGuard restore([outer]() noexcept { in_plugin_thread = outer; });
  return the_host.call(call, error);
}

}  // namespace

void set_host(const Host& host) noexcept {
  the_host = host;
  pjrt::set_host_function(call_host);
}

void note_pool(bool is_synchronous) noexcept {
  may_wait.store(is_synchronous ? pool_threads() - 1 : 0, std::memory_order_relaxed);
}

HostCallbackScope::HostCallbackScope(const Program& program) noexcept {
  ++executions;
  if (program.signature().needs_python && the_host.step_back != nullptr) {
    stepped_back_ = the_host.step_back();
  }
  if (!in_plugin_thread || executions > 1) {
    return;
  }
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

HostCallbackScope::~HostCallbackScope() {
  --executions;
  if (stepped_back_ != nullptr) {
    the_host.step_in(stepped_back_);
  }
  if (waits_in_pool_) {
    waiting_pool_threads.fetch_sub(1, std::memory_order_acq_rel);
  }
}

}  // namespace cyxla::runtime
