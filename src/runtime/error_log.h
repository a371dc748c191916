// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "runtime/thread_state.h"

namespace cyxla::runtime {

// Records a failure of this thread and of the process. printf format; never throws. The thread's
// first failure allocates its message; without memory for it the process's message is still kept.
[[gnu::format(printf, 2, 3)]] void record_error(ErrorCode code, const char* format, ...) noexcept;

// Copies this thread's last message into `buffer` (cut to `size` bytes, with a final zero) and
// returns its full length, 0 when the thread never failed.
std::size_t last_error(char* buffer, std::size_t size) noexcept;
// The kind of this thread's last failure; kInternal when it never failed.
ErrorCode last_error_code() noexcept;
// The same as CYXLA_ERROR_ARGUMENT and so on; CYXLA_ERROR_NONE when it never failed.
std::int32_t last_error_number() noexcept;
// Forgets this thread's last failure; the process's messages and count stay.
void clear_error() noexcept;

// All failures of the process since it started and the last one's message.
struct ErrorInfo {
  std::uint64_t count = 0;
  std::string message;
};
ErrorInfo error_info();

}  // namespace cyxla::runtime
