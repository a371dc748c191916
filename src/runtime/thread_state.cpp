// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_state.h"

#include <pthread.h>

#include <new>

#include "runtime/thread_slot.h"

namespace cyxla::runtime {
namespace {

void end_thread(void* /*registered*/) {
  return_thread_slot();
  delete thread_state.failures;
  thread_state.failures = nullptr;
  thread_state.has_ended = true;
}

// A thread_local object with a destructor would end the process when its registration runs out of
// memory. The key is made when the library is loaded, so that no thread makes it during a fork.
struct Key {
  pthread_key_t value = {};
  bool is_made = pthread_key_create(&value, end_thread) == 0;
};
const Key kEndOfThread;

}  // namespace

constinit thread_local ThreadState thread_state;

bool register_thread() noexcept {
  static constexpr char kRegistered = 0;
  return !thread_state.has_ended && kEndOfThread.is_made &&
         pthread_setspecific(kEndOfThread.value, &kRegistered) == 0;
}

ThreadFailures* thread_failures() noexcept {
  if (thread_state.failures == nullptr && register_thread()) {
    thread_state.failures = new (std::nothrow) ThreadFailures;
  }
  return thread_state.failures;
}

}  // namespace cyxla::runtime
