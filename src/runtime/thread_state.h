// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace cyxla::runtime {

// The longest message, including its final zero.
inline constexpr std::size_t kMessageSize = 1024;

// A thread's last failure. Made when the thread first fails, freed when it ends.
struct ThreadFailures {
  std::array<char, kMessageSize> message = {};
  std::size_t message_size = 0;    // without the final zero
  std::uint64_t host_failure = 0;  // see take_failure() in host_callbacks.h
};

// cyxla's state for each thread. Only two words, because they come out of the small reserve (static
// TLS) that all libraries loaded at run time share. Keep this the only thread_local object of src/.
// It lacks a destructor, so it can be read until the very end of the thread.
struct ThreadState {
  std::uint32_t slot = 0;              // 1 + thread_slot(), or 0
  std::uint16_t executions = 0;        // nested executions of this thread
  bool in_plugin_thread : 1 = false;   // this thread of the plugin runs a host callback
  bool failure_expected : 1 = false;   // of the next execution: see expect_failure()
  bool lacks_message : 1 = false;      // memory ran out for the last failure's message
  bool has_ended : 1 = false;          // its slot and `failures` were released
  std::uint8_t code = 0;               // the last failure's ErrorCode, or 0
  ThreadFailures* failures = nullptr;  // owned
};
static_assert(sizeof(ThreadState) == 16);

// Every call reads it; this model avoids a function call.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadState thread_state;

// Registers the calling thread, so that its slot and `failures` are released when it ends. Returns
// false when memory ran out, or when the thread has already released them.
[[nodiscard]] bool register_thread() noexcept;

// Returns the calling thread's failures, making them if necessary. Null when register_thread()
// fails or memory ran out.
[[nodiscard]] ThreadFailures* thread_failures() noexcept;

}  // namespace cyxla::runtime
