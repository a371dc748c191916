// SPDX-License-Identifier: Apache-2.0
#include "direct/read/steps.h"

#include "direct/read/copy_step.h"
#include "direct/sample_program.h"

namespace cyxla::direct {
namespace {

using namespace test;  // NOLINT: the messages' names

constexpr std::uint64_t kOutputMemory = 0;
constexpr std::uint64_t kInputMemory = 1;
constexpr std::uint64_t kConstantMemory = 2;
constexpr std::uint64_t kPrivateMemory = 3;

Plan read(const std::string& steps) {
  Plan plan;
  read_steps(steps, SampleProgram().read(), {"f", "g"}, plan);
  return plan;
}

std::string refused(const std::string& steps) {
  return refusal([&] { read(steps); });
}

template <typename Kind>
Kind only(const std::string& steps) {
  const Plan plan = read(steps);
  EXPECT_EQ(plan.steps.size(), 1u);
  return std::get<Kind>(plan.steps.at(0).what);
}

std::string shaped(std::uint32_t shape_field, const std::string& shape_bytes,
                   const std::string& slice_bytes) {
  return bytes(shape_field, shape_bytes) + bytes(3 - shape_field, slice_bytes);
}

const std::string kArray = shape(ElementType::kF32, {3});
const std::string kWorkGroup = bytes(2, number(1, 1) + number(2, 1) + number(3, 1));
const std::string kF = kernel("f", "");

TEST(Steps, AKernelTakesArgumentsThenResults) {
  const Plan plan = read(kernel("g", bytes(6, slice(kOutputMemory, 0, 12)) +
                                         bytes(5, slice(kInputMemory, 4, 8)) + packed(3, {0})) +
                         kF + kernel("g", ""));
  EXPECT_EQ(plan.kernels, (std::vector<std::string>{"g", "f"}));
  ASSERT_EQ(plan.steps.size(), 3u);
  const auto& first = std::get<KernelStep>(plan.steps[0].what);
  EXPECT_EQ(first.kernel, 0u);
  ASSERT_EQ(first.slices.size(), 2u);
  EXPECT_EQ(first.slices[0].allocation, kInputMemory);
  EXPECT_EQ(first.slices[0].offset, 4u);
  EXPECT_EQ(first.slices[0].size_bytes, 8u);
  EXPECT_EQ(first.slices[1].allocation, kOutputMemory);
  EXPECT_EQ(std::get<KernelStep>(plan.steps[1].what).kernel, 1u);
  EXPECT_EQ(std::get<KernelStep>(plan.steps[2].what).kernel, 0u);
}

TEST(Steps, AKernelTakesSlicesWithShapesToo) {
  const auto step =
      only<KernelStep>(kernel("f", bytes(5, shaped(2, kArray, slice(kInputMemory, 0, 12)))));
  EXPECT_EQ(step.slices.at(0).allocation, kInputMemory);
  const std::string unfit = "a slice does not fit the shape of its values";
  const auto refused_slice = [](const std::string& text) {
    return refused(kernel("f", bytes(5, text)));
  };
  EXPECT_EQ(refused_slice(shaped(2, kArray, slice(kInputMemory, 0, 8))), unfit);
  EXPECT_EQ(refused_slice(shaped(2, kArray, slice(kInputMemory, 0, 12, ElementType::kS32))), unfit);
  EXPECT_EQ(refused_slice(bytes(1, slice(kInputMemory, 0, 12))),
            "the layout of an array does not fit its shape");
  EXPECT_EQ(refused_slice(shaped(2, kArray, slice(kInputMemory, 0, 12)) + number(3, 1)),
            "a slice with a shape has field 3, which this cyxla does not know");
  EXPECT_EQ(refused_slice(slice(kInputMemory, 0, 12) + number(5, 1)),
            "a slice has field 5, which this cyxla does not know");
  EXPECT_EQ(refused_slice(slice(kInputMemory, 0, 12) + bytes(5, "")),
            "a slice has field 5, which this cyxla does not know");
}

TEST(Steps, RefusesOtherKernels) {
  const auto refused_kernel = [](const std::string& what) {
    return refused(step(11, "kernel", what));
  };
  const auto groups = [](std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    return bytes(1, "f") + bytes(2, number(1, x) + number(2, y) + number(3, z));
  };
  const std::string several = "a kernel has several work groups, which the plugin runs in parallel";
  EXPECT_EQ(refused_kernel(groups(2, 1, 1)), several);
  EXPECT_EQ(refused_kernel(groups(1, 2, 1)), several);
  EXPECT_EQ(refused_kernel(groups(1, 1, 0)), several);
  EXPECT_EQ(refused_kernel(bytes(1, "f")), several);
  EXPECT_EQ(refused_kernel(bytes(1, "f") + bytes(2, number(4, 1))),
            "the work groups of a kernel has field 4, which this cyxla does not know");
  EXPECT_EQ(refused_kernel(bytes(1, "h") + kWorkGroup),
            "a step calls a kernel that was not compiled");
  EXPECT_EQ(refused_kernel(bytes(1, "f") + kWorkGroup + number(7, 1)),
            "a kernel step has field 7, which this cyxla does not know");
  EXPECT_EQ(refused_kernel(bytes(1, "f") + kWorkGroup + bytes(5, slice(kInputMemory, 8, 8))),
            "a step uses 8 bytes at offset 8 of an allocation of 12");
}

TEST(Steps, KernelsMayWantAnAlignmentUpTo64) {
  const auto aligned = [](std::uint64_t alignment) {
    return kernel("f", bytes(4, number(1, alignment) + number(2, 1)));
  };
  EXPECT_NO_THROW(read(aligned(64)));
  EXPECT_NO_THROW(read(kernel("f", bytes(4, ""))));
  EXPECT_EQ(refused(aligned(128)), "a kernel needs memory aligned to 128 bytes");
  EXPECT_EQ(refused(aligned(48)), "a kernel needs memory aligned to 48 bytes");
  EXPECT_EQ(refused(kernel("f", bytes(4, number(3, 1)))),
            "an optional number has field 3, which this cyxla does not know");
}

TEST(Steps, ACallIsItsSteps) {
  const std::string call = step(3, "call", bytes(1, kF + step(3, "call", bytes(1, kF)) + kF));
  const Plan plan = read(kF + call);
  EXPECT_EQ(plan.steps.size(), 4u);
  EXPECT_EQ(refused(step(3, "call", bytes(2, kF))),
            "a call step has field 2, which this cyxla does not know");
  EXPECT_EQ(refused(step(3, "call", bytes(1, kF) + bytes(1, kF))),
            "field 1 (called_sequence) of a call step occurs twice");
}

std::string loop(const std::string& more) {
  return step(10, "while", bytes(1, kernel("g", "")) + bytes(2, kF + kF) + more);
}

TEST(Steps, AWhileStep) {
  const std::string condition = bytes(4, slice(kPrivateMemory, 8, 1, ElementType::kPred));
  const auto unbounded = only<WhileStep>(loop(condition));
  EXPECT_EQ(unbounded.condition.size(), 1u);
  EXPECT_EQ(unbounded.body.size(), 2u);
  EXPECT_EQ(unbounded.condition_result.offset, 8u);
  EXPECT_FALSE(unbounded.trip_count);
  EXPECT_TRUE(read(loop(condition + bytes(3, ""))).has_unbounded_loop);

  const std::string counted = loop(condition + bytes(3, number(1, 7) + number(2, 1)));
  EXPECT_EQ(only<WhileStep>(counted).trip_count, 7u);
  EXPECT_FALSE(read(counted).has_unbounded_loop);
  EXPECT_EQ(only<WhileStep>(loop(condition + bytes(3, number(2, 1)))).trip_count, 0u);

  const std::string incomplete = "a while step has no condition or no body";
  EXPECT_EQ(refused(loop("")), incomplete);
  EXPECT_EQ(refused(loop(bytes(4, slice(kPrivateMemory, 8, 4, ElementType::kPred)))), incomplete);
  EXPECT_EQ(refused(loop(bytes(4, slice(kPrivateMemory, 8, 1, ElementType::kU8)))), incomplete);
  EXPECT_EQ(refused(step(10, "while", bytes(2, kF) + condition)), incomplete);
  EXPECT_EQ(refused(step(10, "while", bytes(1, kF) + condition)), incomplete);
  EXPECT_EQ(refused(loop(condition + bytes(3, number(1, 1000001) + number(2, 1)))),
            "a loop runs 1000001 times, so calling it directly would not help");
  EXPECT_EQ(refused(loop(condition + number(5, 1))),
            "a while step has field 5, which this cyxla does not know");
}

TEST(Steps, AConditionalStep) {
  const std::string branches = bytes(1, kF) + bytes(1, "");
  const std::string index = bytes(2, slice(kPrivateMemory, 4, 4, ElementType::kS32));
  const std::string predicate = bytes(2, slice(kPrivateMemory, 4, 1, ElementType::kPred));
  const auto conditional = [](const std::string& what) { return step(4, "conditional", what); };
  const auto by_index = only<ConditionalStep>(conditional(branches + index));
  EXPECT_FALSE(by_index.is_predicate);
  ASSERT_EQ(by_index.branches.size(), 2u);
  EXPECT_EQ(by_index.branches[0].size(), 1u);
  EXPECT_TRUE(by_index.branches[1].empty());
  EXPECT_TRUE(only<ConditionalStep>(conditional(branches + predicate)).is_predicate);

  const std::string incomplete = "a conditional step has no index or no branches";
  EXPECT_EQ(refused(conditional(branches)), incomplete);
  EXPECT_EQ(refused(conditional(index)), incomplete);
  const std::string unknown = "a conditional step has an index of an unknown type";
  EXPECT_EQ(refused(conditional(branches + bytes(1, "") + predicate)), unknown);
  EXPECT_EQ(
      refused(conditional(branches + bytes(2, slice(kPrivateMemory, 0, 8, ElementType::kS64)))),
      unknown);
  EXPECT_EQ(
      refused(conditional(branches + bytes(2, slice(kPrivateMemory, 0, 1, ElementType::kS32)))),
      unknown);
  EXPECT_EQ(refused(conditional(branches + index + number(3, 1))),
            "a conditional step has field 3, which this cyxla does not know");
}

std::string copy(const std::string& source_shape, const std::string& source,
                 const std::string& destination_shape, const std::string& destination) {
  return step(12, "copy",
              bytes(1, shaped(1, source_shape, source)) +
                  bytes(2, shaped(1, destination_shape, destination)));
}

TEST(Steps, ACopyOfEqualLayouts) {
  const auto step = only<CopyStep>(
      copy(kArray, slice(kInputMemory, 0, 12), kArray, slice(kPrivateMemory, 16, 12)));
  EXPECT_EQ(step.source.allocation, kInputMemory);
  EXPECT_EQ(step.destination.offset, 16u);
  EXPECT_TRUE(step.dimensions.empty());
}

TEST(Steps, ACopyToTheMemoryBesideItsSource) {
  const std::string lower = slice(kPrivateMemory, 0, 12);
  const std::string upper = slice(kPrivateMemory, 12, 12);
  EXPECT_EQ(read(copy(kArray, lower, kArray, upper)).steps.size(), 1u);
  EXPECT_EQ(read(copy(kArray, upper, kArray, lower)).steps.size(), 1u);
}

TEST(Steps, ACopyThatTransposes) {
  const std::string row_major = shape(ElementType::kF32, {1, 2, 3});
  const std::string transposed = shape(ElementType::kF32, {1, 2, 3}, {1, 0, 2});
  const auto step = only<CopyStep>(
      copy(row_major, slice(kPrivateMemory, 0, 24), transposed, slice(kPrivateMemory, 24, 24)));
  EXPECT_EQ(step.element_bytes, 4u);
  ASSERT_EQ(step.dimensions.size(), 2u);  // that of size 1 is left out
  EXPECT_EQ(step.dimensions[0].size, 3u);
  EXPECT_EQ(step.dimensions[0].source_stride_bytes, 4u);
  EXPECT_EQ(step.dimensions[0].destination_stride_bytes, 8u);
  EXPECT_EQ(step.dimensions[1].size, 2u);
  EXPECT_EQ(step.dimensions[1].source_stride_bytes, 12u);
  EXPECT_EQ(step.dimensions[1].destination_stride_bytes, 4u);
}

TEST(Steps, ACopyOntoItselfIsNoStep) {
  const std::string memory = slice(kPrivateMemory, 0, 12);
  EXPECT_TRUE(read(copy(kArray, memory, kArray, memory)).steps.empty());
}

TEST(Steps, RefusesOtherCopies) {
  const std::string from = slice(kInputMemory, 0, 12);
  const std::string to = slice(kPrivateMemory, 0, 12);
  const std::string different = "a copy step copies between arrays of different shapes";
  EXPECT_EQ(refused(copy(kArray, from, shape(ElementType::kF32, {1, 3}), to)), different);
  EXPECT_EQ(refused(copy(kArray, from, shape(ElementType::kS32, {3}),
                         slice(kPrivateMemory, 0, 12, ElementType::kS32))),
            different);
  EXPECT_EQ(refused(step(12, "copy", bytes(1, shaped(1, kArray, from)))),
            "the layout of an array does not fit its shape");
  const std::string table = slice(kPrivateMemory, 0, 8, ElementType::kTuple);
  EXPECT_EQ(refused(copy(tuple_shape({kArray}), table, tuple_shape({kArray}), table)), different);
  const std::string overlapping = "a copy step copies between arrays that overlap";
  EXPECT_EQ(refused(copy(kArray, to, kArray, slice(kPrivateMemory, 8, 12))), overlapping);
  const std::string square = shape(ElementType::kF32, {2, 2});
  const std::string transposed = shape(ElementType::kF32, {2, 2}, {0, 1});
  const std::string memory = slice(kPrivateMemory, 0, 16);
  EXPECT_EQ(refused(copy(square, memory, transposed, memory)), overlapping);
  const std::string read_only = "a copy step writes to an input or a constant";
  EXPECT_EQ(refused(copy(kArray, to, kArray, from)), read_only);
  const std::string pair = shape(ElementType::kF32, {2});
  EXPECT_EQ(refused(copy(pair, slice(kPrivateMemory, 0, 8), pair, slice(kConstantMemory, 0, 8))),
            read_only);
  EXPECT_EQ(refused(step(12, "copy", number(3, 1))),
            "a copy step has field 3, which this cyxla does not know");
}

TEST(Steps, RefusesStepsThatOnlyThePluginRuns) {
  struct Case {
    std::uint32_t kind;
    std::string what;
  };
  const std::vector<Case> cases = {{5, "a sort"},
                                   {6, "an XNNPACK fusion"},
                                   {7, "a matrix product"},
                                   {8, "an update of the random-number state"},
                                   {9, "a top-k"},
                                   {13, "a Fourier transform"},
                                   {14, "an infeed"},
                                   {15, "an outfeed"},
                                   {16, "a custom call"},
                                   {17, "a convolution"},
                                   {18, "a collective operation"},
                                   {19, "a partition id"},
                                   {20, "a replica id"},
                                   {21, "a YNNPACK fusion"},
                                   {22, "a seed of the random-number state"}};
  for (const Case& one : cases) {
    EXPECT_EQ(refused(kF + step(one.kind, "name", "")),
              "step 2 is " + one.what + ", which only the plugin runs");
  }
  EXPECT_EQ(refused(kF + step(23, "name", "")),
            "a step has field 23, which this cyxla does not know");
}

TEST(Steps, RefusesStepsThatContradictThemselves) {
  EXPECT_EQ(refused(bytes(1, bytes(1, "kernel"))),
            "step 1 is of an unknown kind, which only the plugin runs");
  EXPECT_EQ(refused(step(11, "copy", "")), "step 1 is a kernel step with the name of another kind");
  EXPECT_EQ(refused(bytes(1, bytes(1, "copy") + bytes(11, "") + bytes(12, ""))),
            "step 1 is of several kinds");
  EXPECT_EQ(refused(bytes(1, bytes(1, "kernel") + number(11, 1))),
            "field 11 (kernel_thunk) of a step has an unknown encoding");
  EXPECT_EQ(refused(kF + bytes(2, "")),
            "field 2 (thunk_resources) of a step sequence is set, which cyxla does not support");
}

TEST(Steps, RefusesDeepNesting) {
  const auto nested = [](std::size_t depth) {
    std::string steps = kF;
    for (std::size_t i = 0; i < depth; ++i) {
      steps = step(3, "call", bytes(1, steps));
    }
    return steps;
  };
  EXPECT_EQ(read(nested(16)).steps.size(), 1u);
  EXPECT_EQ(refused(nested(17)), "steps are nested more than 16 deep");
}

TEST(Steps, RefusesManySteps) {
  std::string steps;
  for (int i = 0; i < 4096; ++i) {
    steps += kF;
  }
  EXPECT_EQ(read(steps).steps.size(), 4096u);
  EXPECT_EQ(refused(steps + kF), "the program has more than 4096 steps");
}

}  // namespace
}  // namespace cyxla::direct
