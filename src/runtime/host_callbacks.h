// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pjrt/ffi/host_callback.h"
#include "runtime/program.h"

namespace cyxla::runtime {

// How the programs of the process call the host. A thread that waits for an execution must not keep
// from a callback on another thread what that needs: `step_back` gives it up, if the calling thread
// has it, and returns what `step_in` takes it back with; null for nothing.
struct Host {
  // As pjrt::HostFunction; of a failure the host may keep more than the text, under the number that
  // it sets `failure` to.
  bool (*call)(const pjrt::HostCall& call, pjrt::HostCallError& error, std::uint64_t& failure);
  void* (*step_back)();
  void (*step_in)(void* state);
  // The execution that `failure` ended has ended, and nobody asks for it.
  void (*forget)(std::uint64_t failure);
};
// Once for the process, before the first program that calls the host is compiled.
void set_host(const Host& host) noexcept;

// Tells, while the client is made, what its pool is like: its size is read as the plugin reads it.
// A plugin that executes asynchronously orders executions so that one started on its own thread
// never ends; one that executes on the calling thread does not.
void note_pool(bool is_synchronous) noexcept;

// The host asks for what it keeps of a failure: before the execution by this thread that it waits
// for, and afterwards for the number, 0 for none.
void expect_failure() noexcept;
std::uint64_t take_failure() noexcept;

// Marks an execution through PJRT by this thread. A host callback may run on a thread of the
// plugin's pool; an execution that it starts there keeps that thread waiting for others of the
// pool. One of them has to stay free, or all wait for each other: an execution that would take the
// last, or any on an asynchronous plugin, is not permitted, with the reason recorded.
//
// XLA:CPU has an execution wait while 32 are in flight. Those that call the host leave one place to
// what their callbacks execute: a further one waits here, or is not permitted where the callbacks
// of the others might wait for it, being in one itself. Lives on the calling thread's stack.
class [[nodiscard]] HostCallbackScope {
 public:
  explicit HostCallbackScope(const Program& program) noexcept;
  HostCallbackScope(const HostCallbackScope&) = delete;
  HostCallbackScope& operator=(const HostCallbackScope&) = delete;
  ~HostCallbackScope();

  bool permitted() const noexcept { return permitted_; }

  // Takes the number of a failure out of the message that the execution failed with, and keeps it
  // for take_failure() or lets the host forget it.
  void end_failure(char* message) const noexcept;

 private:
  void wait_in_pool(const Program& program) noexcept;
  void take_place(const Program& program) noexcept;

  void* stepped_back_ = nullptr;
  bool failure_expected_;
  bool waits_in_pool_ = false;
  bool has_place_ = false;
  bool permitted_ = true;
};

}  // namespace cyxla::runtime
