// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_slot.h"

#include <pthread.h>

#include <mutex>
#include <new>
#include <vector>

#include "runtime/thread_state.h"

namespace cyxla::runtime {
namespace {

// Assigns the slots.
class SlotRegistry {
 public:
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

  std::mutex& mutex() noexcept { return mutex_; }

 private:
  std::mutex mutex_;
  std::vector<std::size_t> free_;
  std::size_t num_slots_ = 0;
};

// Never destroyed, because threads may end after static destructors have run.
SlotRegistry& registry() noexcept {
  alignas(SlotRegistry) static unsigned char storage[sizeof(SlotRegistry)];
  static auto* registry = new (storage) SlotRegistry;
  return *registry;
}

// Locked while the process forks: otherwise another thread could hold the lock, and the child's
// only thread would wait for it forever when it ends.
[[maybe_unused]] const int kSlotForkHandlers =
    pthread_atfork([] { registry().mutex().lock(); }, [] { registry().mutex().unlock(); },
                   [] { registry().mutex().unlock(); });

}  // namespace

std::size_t thread_slot() noexcept {
  if (thread_state.slot == 0) {
    if (!register_thread()) {
      return kNoThreadSlot;
    }
    try {
      thread_state.slot = static_cast<std::uint32_t>(registry().acquire() + 1);
    } catch (const std::bad_alloc&) {
      return kNoThreadSlot;
    }
  }
  return thread_state.slot - 1;
}

void return_thread_slot() noexcept {
  if (thread_state.slot != 0) {
    registry().release(thread_state.slot - 1);
    thread_state.slot = 0;
  }
}

}  // namespace cyxla::runtime
