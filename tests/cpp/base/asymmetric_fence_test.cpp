// SPDX-License-Identifier: Apache-2.0
#include "base/asymmetric_fence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

namespace cyxla {
namespace {

// Both sides store and then load. Without fences, both loads sometimes miss the other's store.
int rounds_without_sight(int rounds) {
  std::atomic<int> flag = 0;
  std::atomic<int> word = 0;
  int hot_saw = 0;
  int rare_saw = 0;
  int missed = 0;
  std::barrier turn(2);
  std::thread hot([&] {
    for (int round = 1; round <= rounds; ++round) {
      turn.arrive_and_wait();
      flag.store(round, std::memory_order_relaxed);
      light_fence();
      hot_saw = word.load(std::memory_order_relaxed);
      turn.arrive_and_wait();
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    turn.arrive_and_wait();
    word.store(round, std::memory_order_relaxed);
    heavy_fence();
    rare_saw = flag.load(std::memory_order_relaxed);
    turn.arrive_and_wait();
    missed += hot_saw != round && rare_saw != round ? 1 : 0;
  }
  hot.join();
  return missed;
}

TEST(AsymmetricFence, OneSideSeesTheOther) {
  prepare_asymmetric_fences();
  EXPECT_EQ(rounds_without_sight(3000), 0);
}

TEST(AsymmetricFence, OneSideSeesTheOtherWithoutMembarrier) {
  asymmetric_fence::light_is_real = true;
  EXPECT_EQ(rounds_without_sight(3000), 0);
}

}  // namespace
}  // namespace cyxla
