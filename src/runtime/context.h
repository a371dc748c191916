// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>

#include "base/aligned_memory.h"
#include "direct/run/context.h"
#include "runtime/pjrt_context.h"

namespace cyxla::runtime {

// What one thread needs to execute one program, on the program's route. Owned by the program. Used
// by the thread that has in_use set.
struct [[nodiscard]] alignas(kAlignment) Context {
  // Set while a call is in flight, on its own cache line: closing a program waits for it.
  std::atomic<bool> in_use{false};

  // One of the two.
  std::optional<direct::Context> direct;
  std::optional<PjrtContext> pjrt;
};

}  // namespace cyxla::runtime
