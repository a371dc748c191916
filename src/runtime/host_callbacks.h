// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pjrt/ffi/host_callback.h"
#include "runtime/program.h"

namespace cyxla::runtime {

// How programs call the host. A thread that waits for an execution must release what callbacks on
// other threads need (the GIL): `step_back` releases it, if the calling thread holds it, and
// returns the state for `step_in`, which takes it back, or null.
struct Host {
  // Like pjrt::HostFunction. The host may keep more of a failure than its text; it then sets
  // `failure` to a number that identifies it.
  bool (*call)(const pjrt::HostCall& call, pjrt::HostCallError& error, std::uint64_t& failure);
  void* (*step_back)();
  void (*step_in)(void* state);
  // Discards what the host keeps of a failure that will not be collected.
  void (*forget)(std::uint64_t failure);
};
// Call this once, before compiling the first program that calls the host.
void set_host(const Host& host) noexcept;

// Tells how many threads the plugin's pool has: `threads` where it was capped, otherwise what the
// plugin reads in the environment. On a plugin that executes asynchronously, an execution started
// on one of its own threads never ends; on one that executes on the calling thread it does.
void note_pool(bool is_synchronous, std::optional<std::size_t> threads = {}) noexcept;

// expect_failure() announces that the host will collect the failure of this thread's next
// execution. take_failure() returns that failure's number, or 0.
void expect_failure() noexcept;
std::uint64_t take_failure() noexcept;

// Surrounds an execution through PJRT by this thread. A host callback may run on a thread of the
// plugin's pool; an execution that it starts there blocks that thread until other threads of the
// pool are done. One of them must stay free to avoid a deadlock, so an execution that would block
// the last one, or any on an asynchronous plugin, is not permitted; the reason is recorded.
//
// XLA:CPU blocks an execution while 32 are in flight. Executions that call the host leave one of
// these for what their callbacks execute. A further one waits here. It is not permitted if it runs
// in a callback itself, because the others might wait for that callback. Lives on the calling
// thread's stack.
class [[nodiscard]] HostCallbackScope {
 public:
  explicit HostCallbackScope(const Program& program) noexcept;
  HostCallbackScope(const HostCallbackScope&) = delete;
  HostCallbackScope& operator=(const HostCallbackScope&) = delete;
  ~HostCallbackScope();

  bool permitted() const noexcept { return permitted_; }

  // Removes the failure's number from the execution's error message, and keeps it for
  // take_failure() or lets the host forget it.
  void end_failure(char* message) const noexcept;

 private:
  void wait_in_pool(const Program& program) noexcept;
  void begin_host_execution(const Program& program) noexcept;

  void* stepped_back_ = nullptr;
  bool failure_expected_;
  bool waits_in_pool_ = false;
  bool is_host_execution_ = false;
  bool permitted_ = true;
};

}  // namespace cyxla::runtime
