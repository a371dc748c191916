// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace cyxla::direct {

// Runs `work` in a forked child process, where it may crash or never end without harm. The child
// does nothing else and leaves at once, without the process's exit handlers: `work` must not touch
// threads, locks or Python, as only the calling thread exists there. Empty when `work` returned
// true; otherwise the reason. The child is killed when `time_limit` is over. Never forks under
// ThreadSanitizer, which does not allow it in a process with threads.
std::string run_in_child(const std::function<bool()>& work, std::chrono::milliseconds time_limit);

inline constexpr std::chrono::milliseconds kCanaryTimeLimit{5000};

}  // namespace cyxla::direct
