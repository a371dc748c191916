// SPDX-License-Identifier: Apache-2.0
#include "completion.h"
#include "error.h"

namespace fake_plugin {

Completion* Completion::make() noexcept {
  Completion* completion = Pool<Completion>::take();
  completion->references_.store(1, std::memory_order_relaxed);
  completion->complete_.store(false, std::memory_order_relaxed);
  completion->failure_.reset();
  return completion;
}

void Completion::drop_reference() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    Pool<Completion>::give(this);
  }
}

void Completion::complete(std::optional<Failure> failure) noexcept {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  complete_.store(true, std::memory_order_release);
  done_.notify_all();
}

std::optional<Failure> Completion::wait() noexcept {
  if (!is_complete()) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return is_complete(); });
  }
  return failure_;
}

PJRT_Event* make_event(Function function, const CompletionReference& completion) {
  PJRT_Event* event = PJRT_Event::make(FAKE_PLUGIN_EVENT);
  event->completion = completion;
  event->planned = next_failure(FailureOf::kEvent, function);
  return event;
}

namespace implementation {

PJRT_Error* event_destroy(PJRT_Event_Destroy_Args& args) {
  if (args.event != nullptr && PJRT_Event::check(args.event, "PJRT_Event_Destroy")) {
    args.event->completion.reset();
    args.event->retire();
  }
  return nullptr;
}

PJRT_Error* event_is_ready(PJRT_Event_IsReady_Args& args) {
  if (!PJRT_Event::check(args.event, "PJRT_Event_IsReady")) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not an event");
  }
  args.is_ready = args.event->completion->is_complete();
  return nullptr;
}

PJRT_Error* event_await(PJRT_Event_Await_Args& args) {
  if (!PJRT_Event::check(args.event, "PJRT_Event_Await")) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not an event");
  }
  std::optional<Failure> failure = args.event->completion->wait();
  if (!failure) {
    failure = args.event->planned;
  }
  return failure ? make_error(*failure) : nullptr;
}

}  // namespace implementation
}  // namespace fake_plugin
