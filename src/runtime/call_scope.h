// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.h"

namespace cyxla::runtime {

// Marks a call as in flight for as long as it lives, so that nothing it uses is destroyed. Lives on
// the calling thread's stack. When the program cannot be executed, the context is null and the
// reason is recorded.
class [[nodiscard]] CallScope {
 public:
  // With the calling thread's own context; a call made from within another of the same program gets
  // a new one.
  explicit CallScope(Program& program) noexcept;
  // With the context of a prepared call.
  CallScope(Program& program, Context& context) noexcept;
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  ~CallScope();

  Context* context() const noexcept { return context_; }

  // Whether calls are possible at all; records the reason if not.
  [[nodiscard]] static bool check_usable(const Program& program) noexcept;

 private:
  void enter(Context& context) noexcept;

  Program& program_;
  Context* context_ = nullptr;
  bool nested_ = false;
};

}  // namespace cyxla::runtime
