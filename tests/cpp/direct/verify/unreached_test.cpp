// SPDX-License-Identifier: Apache-2.0
#include "direct/verify/unreached.h"

#include <gtest/gtest.h>

#if defined(CYXLA_TEST_KERNELS)

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "direct/test_programs.h"
#include "direct/verify/verify.h"

namespace cyxla::direct {
namespace {

using test::PlanBuilder;

constexpr std::size_t kInt = sizeof(std::int32_t);
constexpr std::size_t kBytes = 4 * sizeof(double);

// switch (index) { 0: y = 2 x by a kernel; 1: y = x; 2: nothing in a loop; 3: a kernel again }
Plan choice(std::size_t copied_from = 0) {
  PlanBuilder builder;
  const Slice index = builder.input(kInt);
  const Slice x = builder.input(kBytes + sizeof(double));
  const Slice y = builder.output(kBytes);
  const Slice first = {x.allocation, 0, kBytes};
  ConditionalStep choice;
  choice.index = index;
  choice.branches.push_back({builder.call("twice", {first, y})});
  choice.branches.push_back({PlanBuilder::copy({x.allocation, copied_from, kBytes}, y)});
  WhileStep loop;
  loop.trip_count = 1;
  loop.body = {builder.call("twice", {first, y})};
  choice.branches.push_back({{loop}});
  choice.branches.push_back({builder.call("twice", {first, y})});
  Step step{choice};
  step.number = 7;
  step.instruction = "cond.3";
  return builder.finish({step});
}

std::vector<std::string> unreached_after(const std::vector<std::int32_t>& indices) {
  const Executable executable(choice(), ExternalSymbols());
  Context context(executable, Runner::Counting::kOn);
  alignas(64) double x[5] = {1, 2, 3, 4, 5};
  alignas(64) double y[4] = {};
  for (std::int32_t index : indices) {
    const cyxla_input inputs[] = {{&index, CYXLA_S32, 1}, {x, CYXLA_F64, 5}};
    void* outputs[] = {y};
    EXPECT_TRUE(context.run(inputs, outputs));
  }
  std::vector<std::string> names;
  for (const UnreachedBlock& block : unreached_blocks(executable.plan(), context)) {
    names.push_back(block.name() + ": " + block.contents);
  }
  return names;
}

TEST(UnreachedBlocks, AreNamedWithWhatTheyHold) {
  EXPECT_EQ(
      unreached_after({0}),
      (std::vector<std::string>{"branch 1 of the conditional in step 7 (cond.3): copies memory",
                                "branch 2 of the conditional in step 7 (cond.3): has a loop",
                                "branch 3 of the conditional in step 7 (cond.3): "}));
  EXPECT_EQ(unreached_after({0, 2, 1}),
            std::vector<std::string>{"branch 3 of the conditional in step 7 (cond.3): "});
  EXPECT_TRUE(unreached_after({3, 0, 1, 2}).empty());
}

TEST(UnreachedBlocks, AreNotCountedByAnOrdinaryContext) {
  const Executable executable(choice(), ExternalSymbols());
  const Context context(executable);
  EXPECT_FALSE(context.has_run(executable.plan().steps));
}

TEST(UnreachedBlocks, OfTheMostBranches) {
  EXPECT_EQ(max_branches(choice().steps), 4U);
  EXPECT_EQ(max_branches({}), 0U);
}

// What the plugin computes, compared in each of the variations that choose one branch.
std::string compared(const Plan& plan, std::size_t variation) {
  const Executable executable(plan, ExternalSymbols());
  Context context(executable, Runner::Counting::kOn);
  Verification verification(executable, {CYXLA_S32, CYXLA_F64});
  return verification.compare_variation(
      context,
      [](const cyxla_input* inputs, void* const* outputs) {
        std::int32_t index = 0;
        std::memcpy(&index, inputs[0].data, kInt);
        const auto* x = static_cast<const double*>(inputs[1].data);
        auto* y = static_cast<double*>(outputs[0]);
        for (int i = 0; i < 4; ++i) {
          y[i] = index == 1 ? x[i] : 2 * x[i];
        }
        return true;
      },
      variation);
}

TEST(Variations, ReachEachBranchOfAConditional) {
  for (std::size_t variation = 0; variation < kMaxVariations; ++variation) {
    EXPECT_EQ(compared(choice(), variation), "") << variation;
  }
  const Executable executable(choice(), ExternalSymbols());
  Context context(executable, Runner::Counting::kOn);
  Verification verification(executable, {CYXLA_S32, CYXLA_F64});
  for (std::size_t variation = 0; variation < 4; ++variation) {
    EXPECT_TRUE(verification.run_variation(context, variation));
  }
  EXPECT_TRUE(unreached_blocks(executable.plan(), context).empty());
}

// A slice that was read wrongly, in a branch that the usual inputs need not reach.
TEST(Variations, FindACopyFromTheWrongPlace) {
  int found = 0;
  for (std::size_t variation = 0; variation < kMaxVariations; ++variation) {
    const std::string difference = compared(choice(sizeof(double)), variation);
    found += difference.find("output 0 differs from the plugin's for varied numbers") == 0 ? 1 : 0;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace cyxla::direct

#endif
