// SPDX-License-Identifier: Apache-2.0
#include "runtime/call_scope.h"

#include "base/asymmetric_fence.h"
#include "runtime/error_log.h"
#include "runtime/runtime.h"
#include "runtime/thread_state.h"

namespace cyxla::runtime {

bool CallScope::check_usable(const Program& program) noexcept {
  const char* name = program.signature().name.c_str();
  if (Runtime::forked()) {
    record_error(ErrorCode::kFork, "cannot execute the program %.200s%s", name,
                 Runtime::kForkedProcess);
    return false;
  }
  switch (program.state()) {
    case Program::State::kOpen:
      return true;
    case Program::State::kDropped:
      record_error(
          ErrorCode::kShutdown,
          "cannot execute the program %.200s: its Executable is gone; keep it or retain() the spec",
          name);
      return false;
    case Program::State::kShutDown:
      record_error(ErrorCode::kShutdown,
                   "cannot execute the program %.200s: the runtime is shut down", name);
      return false;
  }
  return false;
}

CallScope::CallScope(Program& program) noexcept : program_(program) {
  if (!check_usable(program)) {
    return;
  }
  Context* context = program.thread_context();
  if (context != nullptr && context->in_use.load(std::memory_order_relaxed)) {
    context = program.make_context();
    nested_ = context != nullptr;
  }
  if (context == nullptr) {
    if (thread_state.has_ended) {
      record_error(ErrorCode::kUnsupported,
                   "cannot execute the program %.200s: this thread is ending; execute before its "
                   "thread-specific data is destroyed",
                   program.signature().name.c_str());
    } else if (check_usable(program)) {
      record_error(ErrorCode::kInternal, "cannot execute the program %.200s: out of memory",
                   program.signature().name.c_str());
    }
    return;
  }
  enter(*context);
}

CallScope::CallScope(Program& program, Context& context) noexcept : program_(program) {
  if (check_usable(program)) {
    enter(context);
  }
}

void CallScope::enter(Context& context) noexcept {
  // Here and in the destructor the fence pairs with the heavy one of Runtime::drop() and
  // shut_down(). Here, either the one who closes sees the flag or this call sees the closed state.
  if (context.in_use.exchange(true, std::memory_order_acquire)) {
    record_error(
        ErrorCode::kArgument,
        "a prepared call of the program %.200s is already running on another thread, or "
        "called again from its own host callback; prepare one for each that runs at a time",
        program_.signature().name.c_str());
    return;
  }
  light_fence();
  if (!check_usable(program_)) {
    context.in_use.store(false, std::memory_order_release);
    return;
  }
  context_ = &context;
}

CallScope::~CallScope() {
  if (context_ == nullptr) {
    return;
  }
  if (nested_) {
    program_.drop_context(context_);
    return;  // the outer call is still in flight
  }
  context_->in_use.store(false, std::memory_order_release);
  // From here on the program may be gone. Either the one who drops it sees the flag cleared, or
  // this thread sees that the program waits.
  light_fence();
  if (Runtime::may_wait_for_destruction(&program_)) [[unlikely]] {
    Runtime::destroy_dropped();
  }
}

}  // namespace cyxla::runtime
