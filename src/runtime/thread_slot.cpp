// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_slot.h"

#include <pthread.h>

#include <mutex>
#include <new>
#include <vector>

namespace cyxla::runtime {
namespace {

// Hands out the numbers. Never destroyed, since threads end after static destructors have run.
class SlotRegistry {
 public:
  static SlotRegistry& get() {
    static auto* registry = new SlotRegistry;
    return *registry;
  }

  std::size_t acquire() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const std::size_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    free_.reserve(num_slots_ + 1);  // so that release() never allocates
    return num_slots_++;
  }

  void release(std::size_t slot) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

 private:
  std::mutex mutex_;
  std::vector<std::size_t> free_;
  std::size_t num_slots_ = 0;
};

// Without destructors, so that they can be read until the very end of the thread.
// Every call looks at them, and in a library that is loaded at run time this model saves it a
// function call.
[[gnu::tls_model("initial-exec")]] thread_local std::size_t own_slot = kNoThreadSlot;
[[gnu::tls_model("initial-exec")]] thread_local bool ended = false;

// Gives the slot back when the thread ends.
void end_thread(void* /*registered*/) {
  if (own_slot != kNoThreadSlot) {
    SlotRegistry::get().release(own_slot);
  }
  own_slot = kNoThreadSlot;
  ended = true;
}

// A thread_local object with a destructor would end the process when there is no memory to register
// it.
bool register_thread() noexcept {
  struct Key {
    pthread_key_t value = {};
    bool is_made = pthread_key_create(&value, end_thread) == 0;
  };
  static const Key key;
  static const char registered = 0;
  return key.is_made && pthread_setspecific(key.value, &registered) == 0;
}

}  // namespace

std::size_t thread_slot() noexcept {
  if (own_slot == kNoThreadSlot && !ended) {
    if (!register_thread()) {
      return kNoThreadSlot;
    }
    try {
      own_slot = SlotRegistry::get().acquire();
    } catch (const std::bad_alloc&) {
      return kNoThreadSlot;
    }
  }
  return own_slot;
}

}  // namespace cyxla::runtime
