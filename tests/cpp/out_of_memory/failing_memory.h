// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cyxla::test {

// The memory that this executable's code asks for, on the calling thread and outside the plugin. In
// this executable operator new and aligned_alloc are replaced by ones that can fail.
struct FailingMemory {
  // The nth request from now fails, all others succeed; none for 0. Whether one has failed since.
  static void fail(int nth) noexcept;
  static bool failed() noexcept;
  // Blocks asked for and not given back.
  static std::int64_t blocks() noexcept;
  // Tells whether the calling thread runs the plugin's code, whose memory is its own affair.
  static void set_inside_plugin(int (*inside)()) noexcept;
};

}  // namespace cyxla::test
