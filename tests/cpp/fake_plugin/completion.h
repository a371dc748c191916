// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "failures.h"
#include "functions.h"
#include "object.h"

namespace fake_plugin {

// Whether a piece of work is complete, and how it ended. The worker, events and buffers each hold a
// reference; the last one returns it to its pool. Any thread.
class Completion {
 public:
  // Makes an incomplete one with one reference.
  static Completion* make() noexcept;
  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference() noexcept;

  void complete(std::optional<Failure> failure) noexcept;
  bool is_complete() const noexcept { return complete_.load(std::memory_order_acquire); }
  // Waits for completion and returns the failure, if any.
  std::optional<Failure> wait() noexcept;

  Completion* next_free = nullptr;

 private:
  std::atomic<int> references_ = 0;
  std::atomic<bool> complete_ = false;
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<Failure> failure_;
};

// Owns one reference.
class CompletionReference {
 public:
  CompletionReference() noexcept = default;
  static CompletionReference make() noexcept { return CompletionReference(Completion::make()); }
  CompletionReference(const CompletionReference& other) noexcept : completion_(other.completion_) {
    if (completion_ != nullptr) {
      completion_->add_reference();
    }
  }
  CompletionReference(CompletionReference&& other) noexcept
      : completion_(std::exchange(other.completion_, nullptr)) {}
  CompletionReference& operator=(CompletionReference other) noexcept {
    std::swap(completion_, other.completion_);
    return *this;
  }
  ~CompletionReference() { reset(); }

  void reset() noexcept {
    if (completion_ != nullptr) {
      std::exchange(completion_, nullptr)->drop_reference();
    }
  }
  Completion* operator->() const noexcept { return completion_; }

 private:
  explicit CompletionReference(Completion* completion) noexcept : completion_(completion) {}

  Completion* completion_ = nullptr;
};

}  // namespace fake_plugin

// Owned by the caller until Event_Destroy.
struct PJRT_Event : fake_plugin::Object<PJRT_Event> {
  fake_plugin::CompletionReference completion;
  std::optional<fake_plugin::Failure> planned;  // reported instead of a success
};

namespace fake_plugin {

// Makes an event for a completion. Planned event failures of `function` apply to it.
PJRT_Event* make_event(Function function, const CompletionReference& completion);

}  // namespace fake_plugin
