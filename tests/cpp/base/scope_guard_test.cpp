// SPDX-License-Identifier: Apache-2.0
#include "base/scope_guard.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace cyxla {
namespace {

TEST(ScopeGuard, RunsOnceAtTheEndOfTheScope) {
  int runs = 0;
  {
    const ScopeGuard guard([&] { ++runs; });
    EXPECT_EQ(runs, 0);
  }
  EXPECT_EQ(runs, 1);
}

TEST(ScopeGuard, RunsWhenTheScopeIsLeftByAnException) {
  int runs = 0;
  EXPECT_THROW(
      {
        const ScopeGuard guard([&] { ++runs; });
        throw std::runtime_error("out");
      },
      std::runtime_error);
  EXPECT_EQ(runs, 1);
}

TEST(ScopeGuard, RunsInReverseOrderOfMaking) {
  std::string order;
  {
    const ScopeGuard first([&] { order += "1"; });
    const ScopeGuard second([&] { order += "2"; });
  }
  EXPECT_EQ(order, "21");
}

}  // namespace
}  // namespace cyxla
