// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pjrt/host_callback.h"
#include "runtime/program.h"

namespace cyxla::runtime {

// Lets the programs of the process call the host through `function`.
void set_host_function(pjrt::HostFunction function) noexcept;

// Call while the client is made: the size of the plugin's pool is read as the plugin does.
void note_pool_threads() noexcept;

// Marks an execution through PJRT by this thread. A host callback may run on a thread of the
// plugin's pool; an execution that it starts there keeps that thread waiting for others of the pool.
// One of them has to stay free, or all wait for each other: an execution that would take the last is
// not permitted, with the reason recorded. Lives on the calling thread's stack.
class HostCallbackScope {
 public:
  explicit HostCallbackScope(const Program& program) noexcept;
  HostCallbackScope(const HostCallbackScope&) = delete;
  HostCallbackScope& operator=(const HostCallbackScope&) = delete;
  ~HostCallbackScope();

  bool permitted() const noexcept { return permitted_; }

 private:
  bool waits_in_pool_ = false;
  bool permitted_ = true;
};

}  // namespace cyxla::runtime
