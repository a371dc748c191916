// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_slot.h"

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

struct OwnSlot {
  std::size_t slot = kNoThreadSlot;
  bool ended = false;

  ~OwnSlot() {
    if (slot != kNoThreadSlot) {
      SlotRegistry::get().release(slot);
    }
    slot = kNoThreadSlot;
    ended = true;
  }
};

thread_local OwnSlot own_slot;

}  // namespace

std::size_t thread_slot() noexcept {
  if (own_slot.slot == kNoThreadSlot && !own_slot.ended) {
    try {
      own_slot.slot = SlotRegistry::get().acquire();
    } catch (const std::bad_alloc&) {
      return kNoThreadSlot;
    }
  }
  return own_slot.slot;
}

}  // namespace cyxla::runtime
