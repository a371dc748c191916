// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cyxla::test {

// Allocations by this executable's code, on the calling thread and outside the plugin. This
// executable replaces operator new and aligned_alloc by versions that can fail.
struct FailingMemory {
  // Makes the nth allocation from now fail and all others succeed; none for 0. failed() returns
  // whether one has failed since.
  static void fail(int nth) noexcept;
  static bool failed() noexcept;
  // Returns the number of blocks that were allocated and not freed.
  static std::int64_t blocks() noexcept;
  // `inside` returns whether the calling thread runs the plugin's code, whose allocations never
  // fail.
  static void set_inside_plugin(int (*inside)()) noexcept;
};

}  // namespace cyxla::test
