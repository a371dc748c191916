// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_slot.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/child_process.h"

namespace cyxla::runtime {
namespace {

// Returns the slots of `count` threads that are all alive at once.
std::set<std::size_t> slots_at_once(std::ptrdiff_t count) {
  std::barrier all_have_one(count);
  std::vector<std::size_t> slots(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::size_t& slot : slots) {
    threads.emplace_back([&] {
      slot = thread_slot();
      EXPECT_EQ(thread_slot(), slot);
      all_have_one.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return {slots.begin(), slots.end()};
}

TEST(ThreadSlot, IsTheThreadsOwn) {
  const std::size_t own = thread_slot();
  EXPECT_EQ(thread_slot(), own);
  const std::set<std::size_t> others = slots_at_once(20);
  EXPECT_EQ(others.size(), 20U);
  EXPECT_FALSE(others.contains(own));
}

TEST(ThreadSlot, IsPassedOnByThreadsThatEnd) {
  thread_slot();
  const std::set<std::size_t> first = slots_at_once(10);
  for (int i = 0; i < 20; ++i) {
    for (const std::size_t slot : slots_at_once(10)) {
      EXPECT_TRUE(first.contains(slot)) << slot;
    }
  }
}

TEST(ThreadSlot, IsStillThereWhenThreadLocalObjectsAreDestroyed) {
  static std::size_t at_first = 0;
  static std::size_t at_the_end = 0;
  struct AsksLate {
    ~AsksLate() { at_the_end = thread_slot(); }
  };
  std::thread([] {
    thread_local AsksLate made_first;  // so it is destroyed last
    static_cast<void>(&made_first);
    at_first = thread_slot();
  }).join();
  EXPECT_NE(at_first, kNoThreadSlot);
  EXPECT_EQ(at_the_end, at_first);
}

// A child whose only thread ends must not wait for a thread that took a slot during the fork.
TEST(ThreadSlot, AChildForkedWhileOthersTakeSlotsCanEndItsThread) {
  std::atomic<bool> stop = false;
  std::thread taking([&] {
    while (!stop) {
      std::thread([] { thread_slot(); }).join();
    }
  });
  std::string text;
  std::thread forking([&] {
    thread_slot();
    for (int i = 0; i < 200 && text.empty(); ++i) {
      text = test::in_child(
          [] {
            return_thread_slot();  // as at the end of the thread
            return std::string();
          },
          std::chrono::seconds(5));
    }
  });
  forking.join();
  stop = true;
  taking.join();
  EXPECT_EQ(text, "");
}

// Destructors of other thread-specific data may run after the slot was released.
TEST(ThreadSlot, IsNoneForAThreadThatIsTornDown) {
  static std::size_t seen_at_the_end = 0;
  // Created after cyxla's key, so that its destructor runs later.
  pthread_key_t key = {};
  ASSERT_EQ(pthread_key_create(&key, [](void* /*set*/) { seen_at_the_end = thread_slot(); }), 0);
  std::thread([&] {
    ASSERT_EQ(pthread_setspecific(key, &seen_at_the_end), 0);
    EXPECT_NE(thread_slot(), kNoThreadSlot);
  }).join();
  pthread_key_delete(key);
  EXPECT_EQ(seen_at_the_end, kNoThreadSlot);
}

}  // namespace
}  // namespace cyxla::runtime
