// SPDX-License-Identifier: Apache-2.0
#include "direct/run/context.h"

#include <gtest/gtest.h>

#if defined(CYXLA_TEST_KERNELS)

#include <array>
#include <cfenv>
#include <limits>
#include <thread>
#include <vector>

#include "direct/test_programs.h"

namespace cyxla::direct {
namespace {

using test::PlanBuilder;

constexpr std::size_t kCount = 8;
constexpr std::size_t kBytes = kCount * sizeof(double);

// Memory whose every 8-byte step is a place for an array; the first one is aligned.
struct Arena {
  alignas(64) std::array<double, 64> values = {};

  double* at(std::size_t index) { return values.data() + index; }
  double* fill(std::size_t index, double first) {
    for (std::size_t i = 0; i < kCount; ++i) {
      values[index + i] = first + static_cast<double>(i);
    }
    return at(index);
  }
};

cyxla_input input(const double* data) { return {data, CYXLA_F64, kCount}; }

Plan unary(const char* kernel) {
  PlanBuilder builder;
  const Slice in = builder.input(kBytes);
  const Slice out = builder.output(kBytes);
  return builder.finish({builder.call(kernel, {in, out})});
}

void expect_reversed(const double* result, double first) {
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(result[i], first + static_cast<double>(kCount - 1 - i)) << i;
  }
}

TEST(Context, GivesKernelsAlignedMemoryAndOneWorkGroup) {
  const Executable executable(unary("describe"), ExternalSymbols());
  Context context(executable);
  Arena arena;
  for (const std::size_t in : {0, 1, 3}) {
    for (const std::size_t out : {16, 17, 22}) {
      const cyxla_input inputs = input(arena.at(in));
      void* const outputs = arena.at(out);
      ASSERT_TRUE(context.run(&inputs, &outputs));
      EXPECT_EQ(arena.at(out)[0], 1);
      EXPECT_EQ(arena.at(out)[1], 0);
      EXPECT_EQ(arena.at(out)[2], 0) << "input at " << in;
      EXPECT_EQ(arena.at(out)[3], 0) << "output at " << out;
    }
  }
}

TEST(Context, IsRightWhereverInputAndOutputLieAndMove) {
  const Executable executable(unary("reverse"), ExternalSymbols());
  Context context(executable);
  double first = 1;
  for (std::size_t in = 0; in < 24; ++in) {
    for (std::size_t out = 0; out < 24; ++out) {
      Arena arena;
      first += 100;
      const cyxla_input inputs = input(arena.fill(in, first));
      void* const outputs = arena.at(out);
      ASSERT_TRUE(context.run(&inputs, &outputs));
      SCOPED_TRACE("input at " + std::to_string(in) + ", output at " + std::to_string(out));
      expect_reversed(arena.at(out), first);
      for (std::size_t i = 0; i < 64; ++i) {
        if ((i < in || i >= in + kCount) && (i < out || i >= out + kCount)) {
          ASSERT_EQ(arena.values[i], 0) << i;
        }
      }
    }
  }
}

TEST(Context, ReadsNewValuesAtOldAddresses) {
  const Executable executable(unary("reverse"), ExternalSymbols());
  Context context(executable);
  Arena arena;
  for (const std::size_t in : {0, 1}) {
    const cyxla_input inputs = input(arena.at(in));
    void* const outputs = arena.at(16);
    for (const double first : {1.0, 50.0}) {
      arena.fill(in, first);
      ASSERT_TRUE(context.run(&inputs, &outputs));
      expect_reversed(arena.at(16), first);
    }
  }
}

Plan two_outputs() {
  PlanBuilder builder;
  const Slice a = builder.input(kBytes);
  const Slice b = builder.input(kBytes);
  const Slice sum = builder.output(kBytes);
  const Slice twice = builder.output(kBytes);
  return builder.finish({builder.call("add", {a, b, sum}), builder.call("twice", {sum, twice})});
}

TEST(Context, DropsOutputsAndTakesThemUpAgain) {
  const Executable executable(two_outputs(), ExternalSymbols());
  Context context(executable);
  Arena arena;
  const std::array<cyxla_input, 2> inputs = {input(arena.fill(0, 1)), input(arena.fill(8, 10))};
  const std::array<void*, 2> only_second = {nullptr, arena.at(16)};
  ASSERT_TRUE(context.run(inputs.data(), only_second.data()));
  EXPECT_EQ(arena.at(16)[1], 2 * (2 + 11));
  const std::array<void*, 2> both = {arena.at(24), arena.at(33)};
  ASSERT_TRUE(context.run(inputs.data(), both.data()));
  EXPECT_EQ(arena.at(24)[1], 2 + 11);
  EXPECT_EQ(arena.at(33)[1], 2 * (2 + 11));
  arena.fill(16, 0);
  const std::array<void*, 2> neither = {nullptr, nullptr};
  ASSERT_TRUE(context.run(inputs.data(), neither.data()));
  EXPECT_EQ(arena.at(16)[1], 1);
}

TEST(Context, LetsTheLastOfOverlappingOutputsWin) {
  const Executable executable(two_outputs(), ExternalSymbols());
  Arena arena;
  const std::array<cyxla_input, 2> inputs = {input(arena.fill(0, 1)), input(arena.fill(8, 10))};
  for (const std::size_t sum : {16, 20, 24, 28, 32}) {
    Context context(executable);
    const std::array<void*, 2> outputs = {arena.at(sum), arena.at(24)};
    ASSERT_TRUE(context.run(inputs.data(), outputs.data()));
    for (std::size_t i = 0; i < kCount; ++i) {
      const double expected = 11 + 2 * static_cast<double>(i);
      EXPECT_EQ(arena.at(24)[i], 2 * expected) << "sum at " << sum;
      if (sum + i < 24 || sum + i >= 24 + kCount) {
        EXPECT_EQ(arena.at(sum)[i], expected) << "sum at " << sum;
      }
    }
  }
}

// Many arrays are searched for overlaps in another way than few.
class ManyArrays : public ::testing::Test {
 protected:
  static constexpr std::size_t kPairs = 12;

  static Plan plan() {
    PlanBuilder builder;
    Steps steps;
    for (std::size_t i = 0; i < kPairs; ++i) {
      const Slice in = builder.input(kBytes);
      steps.push_back(builder.call("reverse", {in, builder.output(kBytes)}));
    }
    return builder.finish(std::move(steps));
  }

  // Runs with input i at places[i] and output i at places[kPairs + i], all in one array.
  void run(const std::vector<std::size_t>& places) {
    std::vector<double> values(512 + 8);
    auto* memory =
        reinterpret_cast<double*>((reinterpret_cast<std::uintptr_t>(values.data()) + 63) / 64 * 64);
    std::vector<cyxla_input> inputs;
    std::vector<void*> outputs;
    for (std::size_t i = 0; i < kPairs; ++i) {
      for (std::size_t k = 0; k < kCount; ++k) {
        memory[places[i] + k] = static_cast<double>(100 * i + k);
      }
      inputs.push_back(input(memory + places[i]));
      outputs.push_back(memory + places[kPairs + i]);
    }
    std::vector<double> wanted(memory, memory + 512);
    for (std::size_t i = 0; i < kPairs; ++i) {
      for (std::size_t k = 0; k < kCount; ++k) {
        wanted[places[kPairs + i] + k] = static_cast<double>(100 * i + kCount - 1 - k);
      }
    }
    ASSERT_TRUE(context_.run(inputs.data(), outputs.data()));
    EXPECT_EQ(std::vector<double>(memory, memory + 512), wanted);
  }

  Executable executable_{plan(), ExternalSymbols()};
  Context context_{executable_};
};

TEST_F(ManyArrays, AreRightInAnyOrderAndWithAnyOverlap) {
  // Input and output of a pair side by side, in an order that changes from run to run.
  for (std::size_t round = 0; round < 60; ++round) {
    std::vector<std::size_t> places(2 * kPairs);
    for (std::size_t i = 0; i < kPairs; ++i) {
      places[i] = (i * (round % 11 + 1) % 13) * 32;
      places[kPairs + i] = places[i] + 8 + round % 7;
    }
    run(places);
    // An output on its input.
    std::vector<std::size_t> overlapping = places;
    overlapping[kPairs + round % kPairs] = places[round % kPairs] + round % 5;
    run(overlapping);
    // Two outputs on each other.
    overlapping = places;
    overlapping[kPairs + kPairs - 1] = overlapping[kPairs] + round % 9;
    run(overlapping);
    run(places);
  }
}

TEST(Context, ComesBackFromOverlapToMemoryInPlace) {
  const Executable executable(unary("reverse"), ExternalSymbols());
  Context context(executable);
  Arena arena;
  for (const std::size_t out : {0, 16, 4, 16, 8, 0}) {
    const cyxla_input inputs = input(arena.fill(0, 3));
    void* const outputs = arena.at(out);
    ASSERT_TRUE(context.run(&inputs, &outputs));
    expect_reversed(arena.at(out), 3);
  }
}

TEST(Context, StartsADonatedInputsOutputAsItsCopy) {
  PlanBuilder builder;
  const Slice both = builder.donated(kBytes);
  const Slice other = builder.output(kBytes);
  const Executable executable(
      builder.finish({builder.call("increment", {both}), builder.call("twice", {both, other})}),
      ExternalSymbols());
  Context context(executable);
  for (const std::size_t in : {0, 1, 16, 20}) {
    Arena arena;
    // The first 4 bytes of a double are its lowest bits: the kernel makes 1 of 0 there.
    const cyxla_input inputs = input(arena.fill(in, 1));
    const std::array<void*, 2> outputs = {arena.at(16), arena.at(32)};
    ASSERT_TRUE(context.run(&inputs, outputs.data()));
    EXPECT_EQ(arena.at(16)[0], 1 + std::numeric_limits<double>::epsilon());
    EXPECT_EQ(arena.at(16)[1], 2);
    EXPECT_EQ(arena.at(32)[1], 4);
    if (in + kCount <= 16) {
      EXPECT_EQ(arena.at(in)[0], 1) << "the input was written";
    }
  }
}

TEST(Context, GivesConstantsAlignedMemoryOfItsOwn) {
  PlanBuilder builder;
  const Slice in = builder.constant<double>({1, 2, 3, 4, 5, 6, 7, 8});
  const Slice out = builder.output(kBytes);
  const Executable executable(builder.finish({builder.call("reverse", {in, out})}),
                              ExternalSymbols());
  Context context(executable);
  Arena arena;
  void* const outputs = arena.at(0);
  ASSERT_TRUE(context.run(nullptr, &outputs));
  expect_reversed(arena.at(0), 1);
}

TEST(Context, TakesArraysWithoutElements) {
  PlanBuilder builder;
  const Slice in = builder.input(0);
  const Slice out = builder.output(0);
  const Executable executable(builder.finish({builder.call("twice", {in, out})}),
                              ExternalSymbols());
  Context context(executable);
  const cyxla_input inputs = {nullptr, CYXLA_F64, 0};
  void* outputs = nullptr;
  EXPECT_TRUE(context.run(&inputs, &outputs));
  double unused = 0;
  outputs = &unused;
  EXPECT_TRUE(context.run(&inputs, &outputs));
}

TEST(Context, FlushesSubnormalNumbersAndRestoresTheCallersState) {
  const Executable executable(unary("twice"), ExternalSymbols());
  Context context(executable);
  Arena arena;
  const double subnormal = std::numeric_limits<double>::min() / 8;
  const cyxla_input inputs = input(arena.fill(0, 0));
  arena.values[0] = subnormal;
  arena.values[1] = std::numeric_limits<double>::max();
  void* const outputs = arena.at(16);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_UPWARD);
  const bool ok = context.run(&inputs, &outputs);
  const int rounding = std::fegetround();
  const int flags = std::fetestexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_TONEAREST);
  ASSERT_TRUE(ok);
  EXPECT_EQ(rounding, FE_UPWARD);
  EXPECT_EQ(flags, 0);
  EXPECT_EQ(arena.at(16)[0], 0);
  EXPECT_EQ(arena.at(16)[1], std::numeric_limits<double>::infinity());
}

TEST(Context, OfEachThreadIsItsOwn) {
  const Executable executable(two_outputs(), ExternalSymbols());
  std::vector<std::thread> threads;
  std::array<bool, 4> right = {};
  for (std::size_t thread = 0; thread < right.size(); ++thread) {
    threads.emplace_back([&executable, &right, thread] {
      Context context(executable);
      Arena arena;
      bool all_right = true;
      for (int i = 0; i < 20000; ++i) {
        const double first = static_cast<double>(thread) * 1e6 + i;
        const std::size_t shift = static_cast<std::size_t>(i) % 3;
        const std::array<cyxla_input, 2> inputs = {input(arena.fill(shift, first)),
                                                   input(arena.fill(12, 1))};
        const std::array<void*, 2> outputs = {arena.at(24), arena.at(40 + shift)};
        all_right = context.run(inputs.data(), outputs.data()) && all_right;
        all_right = all_right && arena.at(40 + shift)[7] == 2 * (first + 7 + 8);
      }
      right[thread] = all_right;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(right, (std::array<bool, 4>{true, true, true, true}));
}

}  // namespace
}  // namespace cyxla::direct

#endif
