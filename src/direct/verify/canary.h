// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace cyxla::direct {

// When a child process is killed. Neither limit decides about a program that ends: they keep this
// process from waiting forever.
struct ChildLimits {
  // Of the child's own processor time, which a busy machine does not use up.
  std::chrono::seconds processor_time{5};
  // Of the wall clock, for a child that waits and computes nothing.
  std::chrono::milliseconds wall_time{120'000};
};

// Runs `work` in a forked child process, where it may crash or never end without harm. The child
// does nothing else and leaves at once, without the process's exit handlers: `work` must not touch
// threads, locks or Python, as only the calling thread exists there. Empty when `work` returned
// true; otherwise the reason. Never forks under ThreadSanitizer, which does not allow it in a
// process with threads.
std::string run_in_child(const std::function<bool()>& work, const ChildLimits& limits = {});

}  // namespace cyxla::direct
