// SPDX-License-Identifier: Apache-2.0
#include "direct/run/runner.h"

#include <gtest/gtest.h>

#if defined(CYXLA_TEST_KERNELS)

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "direct/run/context.h"
#include "direct/run/copy_bytes.h"
#include "direct/test_programs.h"

namespace cyxla::direct {
namespace {

using test::PlanBuilder;

constexpr std::size_t kInt = sizeof(std::int32_t);

// Runs a program of one 32-bit input and one 32-bit output.
std::int32_t run(const Plan& plan, std::int32_t input) {
  const Executable executable(plan, ExternalSymbols());
  Context context(executable);
  std::int32_t result = -1;
  const cyxla_input in = {&input, CYXLA_S32, 1};
  void* const out = &result;
  // Twice: nothing may be left of the first run.
  EXPECT_TRUE(context.run(&in, &out));
  const std::int32_t first = result;
  EXPECT_TRUE(context.run(&in, &out));
  EXPECT_EQ(result, first);
  return result;
}

TEST(Runner, RepeatsACountedLoopWithoutItsCondition) {
  PlanBuilder builder;
  const Slice in = builder.input(kInt);
  const Slice out = builder.output(kInt);
  WhileStep loop;
  loop.trip_count = 5;
  loop.condition = {builder.call("fail", {out})};
  loop.body = {builder.call("increment", {out})};
  EXPECT_EQ(run(builder.finish({PlanBuilder::copy(in, out), {loop}}), 10), 15);
  loop.trip_count = 0;
  EXPECT_EQ(run(builder.finish({PlanBuilder::copy(in, out), {loop}}), 10), 10);
}

Plan loop_until_seven() {
  PlanBuilder builder;
  const Slice in = builder.input(kInt);
  const Slice out = builder.output(kInt);
  const Slice seven = builder.constant<std::int32_t>({7});
  const Slice condition = builder.temporary(1);
  WhileStep loop;
  loop.condition = {builder.call("less", {out, seven, condition})};
  loop.condition_result = condition;
  loop.body = {builder.call("increment", {out})};
  return builder.finish({PlanBuilder::copy(in, out), {loop}});
}

TEST(Runner, RepeatsALoopWhileItsConditionHolds) {
  EXPECT_EQ(run(loop_until_seven(), -3), 7);
  EXPECT_EQ(run(loop_until_seven(), 6), 7);
  EXPECT_EQ(run(loop_until_seven(), 9), 9);
}

TEST(Runner, LimitsTheTripsOfATrial) {
  const Executable executable(loop_until_seven(), ExternalSymbols());
  const std::int32_t input = 0;
  std::int32_t result = -1;
  const cyxla_input in = {&input, CYXLA_S32, 1};
  void* const out = &result;
  for (const std::uint64_t trips : {6, 0}) {
    Context context(executable);
    context.limit_trips(trips);
    EXPECT_FALSE(context.run(&in, &out)) << trips;
  }
  Context context(executable);
  context.limit_trips(13);
  EXPECT_TRUE(context.run(&in, &out));
  EXPECT_EQ(result, 7);
  EXPECT_FALSE(context.run(&in, &out));  // the limit is that of all runs together
}

TEST(Runner, RunsLoopsInsideLoops) {
  PlanBuilder builder;
  const Slice in = builder.input(kInt);
  const Slice out = builder.output(kInt);
  WhileStep inner;
  inner.trip_count = 3;
  inner.body = {builder.call("increment", {out})};
  WhileStep outer;
  outer.trip_count = 4;
  outer.body = {builder.call("increment", {out}), {inner}, builder.call("increment", {out})};
  const Plan plan =
      builder.finish({PlanBuilder::copy(in, out), {outer}, builder.call("increment", {out})});
  EXPECT_EQ(run(plan, 0), 4 * 5 + 1);
}

TEST(Runner, ChoosesTheLastBranchForAnIndexOutOfRange) {
  PlanBuilder builder;
  const Slice in = builder.input(kInt);
  const Slice out = builder.output(kInt);
  ConditionalStep choice;
  choice.index = in;
  for (const std::int32_t value : {100, 200, 300}) {
    choice.branches.push_back({PlanBuilder::copy(builder.constant({value}), out)});
  }
  const Plan plan = builder.finish({{choice}});
  EXPECT_EQ(run(plan, 0), 100);
  EXPECT_EQ(run(plan, 1), 200);
  EXPECT_EQ(run(plan, 2), 300);
  for (const std::int32_t index : {3, -1, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(run(plan, index), 300) << index;
  }
}

TEST(Runner, ChoosesTheFirstBranchForATruePredicate) {
  PlanBuilder builder;
  const Slice in = builder.input(kInt);
  const Slice out = builder.output(kInt);
  ConditionalStep choice;
  choice.index = {in.allocation, 0, 1};
  choice.is_predicate = true;
  for (const std::int32_t value : {100, 200}) {
    choice.branches.push_back({PlanBuilder::copy(builder.constant({value}), out)});
  }
  const Plan plan = builder.finish({{choice}});
  EXPECT_EQ(run(plan, 1), 100);
  EXPECT_EQ(run(plan, 0), 200);
}

TEST(Runner, ReportsAKernelsErrorWhereverItIs) {
  const auto fails = [](const std::function<Step(PlanBuilder&, const Slice&)>& make) {
    PlanBuilder builder;
    const Slice out = builder.output(kInt);
    const Step step = make(builder, out);
    const Executable executable(builder.finish({step}), ExternalSymbols());
    Context context(executable);
    std::int32_t result = 0;
    void* const output = &result;
    return !context.run(nullptr, &output);
  };
  EXPECT_TRUE(fails([](auto& builder, auto& out) { return builder.call("fail", {out}); }));
  EXPECT_TRUE(fails([](auto& builder, auto& out) {
    WhileStep loop;
    loop.trip_count = 1;
    loop.body = {builder.call("fail", {out})};
    return Step{loop};
  }));
  EXPECT_TRUE(fails([](auto& builder, auto& out) {
    WhileStep loop;
    loop.condition = {builder.call("fail", {out})};
    loop.condition_result = out;
    return Step{loop};
  }));
  EXPECT_TRUE(fails([](auto& builder, auto& out) {
    ConditionalStep choice;
    choice.index = builder.template constant<std::int32_t>({0});
    choice.branches = {{builder.call("fail", {out})}};
    return Step{choice};
  }));
  EXPECT_FALSE(fails([](auto& builder, auto& out) { return builder.call("increment", {out}); }));
}

TEST(Runner, TransposesWithStrides) {
  PlanBuilder builder;
  CopyStep copy;
  copy.source = builder.input(6 * sizeof(double));
  copy.destination = builder.output(6 * sizeof(double));
  copy.element_bytes = sizeof(double);
  // Rows of 3 become columns.
  copy.dimensions = {{2, 3 * sizeof(double), sizeof(double)},
                     {3, sizeof(double), 2 * sizeof(double)}};
  const Executable executable(builder.finish({{copy}}), ExternalSymbols());
  Context context(executable);
  const std::array<double, 6> values = {1, 2, 3, 4, 5, 6};
  std::array<double, 6> result = {};
  const cyxla_input in = {values.data(), CYXLA_F64, 6};
  void* const out = result.data();
  ASSERT_TRUE(context.run(&in, &out));
  EXPECT_EQ(result, (std::array<double, 6>{1, 4, 2, 5, 3, 6}));
}

TEST(Runner, UsesTheOffsetOfASlice) {
  PlanBuilder builder;
  const Slice in = builder.input(3 * kInt);
  const Slice out = builder.output(kInt);
  const Executable executable(
      builder.finish({PlanBuilder::copy({in.allocation, 2 * kInt, kInt}, out)}), ExternalSymbols());
  Context context(executable);
  alignas(64) std::array<std::int32_t, 16> values = {1, 2, 3};
  alignas(64) std::int32_t result = 0;
  const cyxla_input in_place = {values.data(), CYXLA_S32, 3};
  const cyxla_input staged = {values.data() + 1, CYXLA_S32, 3};
  values[3] = 4;
  void* const output = &result;
  ASSERT_TRUE(context.run(&in_place, &output));
  EXPECT_EQ(result, 3);
  ASSERT_TRUE(context.run(&staged, &output));
  EXPECT_EQ(result, 4);
}

TEST(CopyBytes, CopiesEveryLengthEvenOntoItself) {
  for (std::size_t size = 0; size < 200; ++size) {
    for (const std::size_t shift : {0U, 1U, 7U, 40U}) {
      std::vector<unsigned char> bytes(400);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<unsigned char>(i * 37);
      }
      std::vector<unsigned char> expected = bytes;
      std::memmove(expected.data() + 50 + shift, expected.data() + 50, size);
      copy_bytes(bytes.data() + 50 + shift, bytes.data() + 50, size);
      ASSERT_EQ(bytes, expected) << size << " bytes, shift " << shift;
    }
  }
}

}  // namespace
}  // namespace cyxla::direct

#endif
