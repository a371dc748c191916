// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace cyxla::runtime {

// Longest message kept, with its final zero.
inline constexpr std::size_t kMessageSize = 1024;

// What a thread keeps of its failures. Made when it first fails, freed when it ends.
struct ThreadFailures {
  std::array<char, kMessageSize> message = {};
  std::size_t message_size = 0;    // without the final zero
  std::uint64_t host_failure = 0;  // see take_failure() in host_callbacks.h
};

// What cyxla keeps for each thread: two words, as they come out of the C library's small reserve
// for libraries that are loaded at run time (static TLS), which all of those share. Keep this the
// only thread_local object of src/. It has no destructor, so that it can be read until the very end
// of the thread.
struct ThreadState {
  std::uint32_t slot = 0;              // 1 + thread_slot(), or 0
  std::uint16_t executions = 0;        // of this thread, one within the other
  bool in_plugin_thread : 1 = false;   // a host callback runs on this thread of the plugin's
  bool failure_expected : 1 = false;   // in the next execution: see expect_failure()
  bool lacks_message : 1 = false;      // there was no memory for the last failure's
  bool has_ended : 1 = false;          // its slot and `failures` are given back
  std::uint8_t code = 0;               // the last failure's ErrorCode
  ThreadFailures* failures = nullptr;  // owned
};
static_assert(sizeof(ThreadState) == 16);

// Every call reads it. This model saves it a function call.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadState thread_state;

// Has what the calling thread owns given back when it ends. False when memory ran out, and for a
// thread that has given it back.
[[nodiscard]] bool register_thread() noexcept;

// The calling thread's, made if need be. Null when register_thread() fails or memory ran out.
[[nodiscard]] ThreadFailures* thread_failures() noexcept;

}  // namespace cyxla::runtime
