// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace cyxla::direct {

// When a child process is killed. The limits are so long that they only stop programs that do not
// end.
struct ChildLimits {
  // The child's own processor time, which does not depend on other load of the machine.
  std::chrono::seconds processor_time{5};
  // The wall-clock time, for a child that waits and computes nothing.
  std::chrono::milliseconds wall_time{120'000};
};

// Runs `work` in a forked child process, where it may crash or run forever without harm. Returns an
// empty string if `work` returned true, otherwise the reason. The child exits without running exit
// handlers. `work` must not touch threads, locks or Python, because only the calling thread exists
// in the child. Does not fork under ThreadSanitizer, which does not support it in a process with
// threads.
[[nodiscard]] std::string run_in_child(const std::function<bool()>& work,
                                       const ChildLimits& limits = {});

}  // namespace cyxla::direct
