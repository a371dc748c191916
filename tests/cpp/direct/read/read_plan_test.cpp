// SPDX-License-Identifier: Apache-2.0
#include "direct/read/read_plan.h"

#include "direct/read/work.h"
#include "direct/sample_program.h"

namespace cyxla::direct {
namespace {

using namespace test;  // NOLINT: the messages' names

std::string refused(const SampleProgram& program) {
  return refusal([&] { read_plan(program.serialized(), program.expected); });
}

TEST(ReadPlan, OfASampleProgram) {
  const SampleProgram program;
  const Plan plan = read_plan(program.serialized(), program.expected);
  EXPECT_EQ(plan.allocations.size(), 4u);
  EXPECT_EQ(plan.inputs, std::vector<std::size_t>{1});
  EXPECT_EQ(plan.outputs, std::vector<std::size_t>{0});
  EXPECT_EQ(plan.kernels, std::vector<std::string>{"f"});
  EXPECT_EQ(plan.objects, std::vector<std::string>{"ELF"});
  EXPECT_EQ(plan.steps.size(), 1u);
  EXPECT_FALSE(plan.has_unbounded_loop);
}

TEST(ReadPlan, TakesTheFieldsThatNewerPluginsWrite) {
  const SampleProgram program;
  const std::string serialized =
      bytes(1, program.result() + bytes(10, "data layout")) + bytes(2, "") + bytes(3, "client");
  EXPECT_EQ(read_plan(serialized, program.expected).steps.size(), 1u);
}

TEST(ReadPlan, FindsUnboundedLoopsInsideKernels) {
  SampleProgram program;
  program.computations.push_back(computation(5, 0, {instruction(50, "while", program.array)}));
  EXPECT_TRUE(read_plan(program.serialized(), program.expected).has_unbounded_loop);
}

TEST(ReadPlan, RefusesLoopsThatTakeLongWithinOthers) {
  SampleProgram program;
  const auto loop = [&](std::uint64_t id, int trips, std::uint64_t body) {
    return test::counted_loop(id, program.array, trips, body);
  };
  program.computations = {computation(7, 70, {instruction(70, "add", program.array)}),
                          computation(6, 60, {loop(60, 1000, 7)})};
  const double without = read_plan(program.serialized(), program.expected).work;
  program.instructions.push_back(loop(61, 900, 6));
  EXPECT_GT(read_plan(program.serialized(), program.expected).work, without + 900.0 * 1000 * 3);
  program.instructions.back() = loop(61, 1000, 6);
  EXPECT_EQ(refused(program),
            "its loops, including nested ones, run more than 1000000 times, so calling it directly "
            "would not help");
}

TEST(ReadPlan, RefusesWhatComputesForLong) {
  SampleProgram program;
  const std::string large = test::shape(ElementType::kF32, {200'000});
  const std::string sine = instruction(70, "sine", large);
  program.computations = {computation(7, 70, {sine})};
  program.instructions.push_back(test::counted_loop(61, program.array, 10, 7));
  EXPECT_LT(read_plan(program.serialized(), program.expected).work, kLongWork);
  program.instructions.back() = test::counted_loop(61, program.array, 20, 7);
  const std::string reason =
      "a call takes more than about 20 ms, so calling it directly would not help";
  EXPECT_EQ(refused(program), reason);
  // A computation that is missing may compute anything.
  program.instructions.back() = instruction(61, "call", program.array, test::calls({8}));
  program.expected = {{12}, {12}};
  EXPECT_NE(refused(program), "");
}

TEST(ReadPlan, RefusesAnotherMachine) {
  SampleProgram program;
  const std::string reason = "the kernels are not for x86-64 Linux";
  for (const char* triple : {"aarch64-unknown-linux-gnu", "x86_64-apple-darwin", ""}) {
    program.target = bytes(9, bytes(1, triple));
    EXPECT_EQ(refused(program), reason);
  }
  program.target = "";
  EXPECT_EQ(refused(program), "the executable does not name the target of its kernels");
}

TEST(ReadPlan, RefusesOtherObjectFiles) {
  SampleProgram program;
  program.objects_kind = 1;
  EXPECT_EQ(refused(program), "the object files hold no kernels; they are of kind 1");
  program.objects_kind = 2;
  program.symbols += bytes(7, number(1, 3) + bytes(2, "h"));
  EXPECT_EQ(refused(program), "a compiled function is neither a kernel nor a comparator");
}

TEST(ReadPlan, AComparatorIsNoKernel) {
  SampleProgram program;
  program.symbols = bytes(7, number(1, 2) + bytes(2, "f"));
  EXPECT_EQ(refused(program), "a step calls a kernel that was not compiled");
}

TEST(ReadPlan, RefusesWhatItDoesNotKnow) {
  const SampleProgram program;
  const auto with = [&](const std::string& more) {
    return refusal([&] { read_plan(bytes(1, program.result() + more), program.expected); });
  };
  EXPECT_EQ(with(bytes(4, "object")),
            "the compilation result has field 4, which this cyxla does not know");
  EXPECT_EQ(with(bytes(7, number(3, 1))), "a symbol has field 3, which this cyxla does not know");
  EXPECT_EQ(with(bytes(8, number(3, 1))),
            "an object file has field 3, which this cyxla does not know");
  EXPECT_EQ(with(bytes(6, "")), "field 6 (thunk_sequence) of the compilation result occurs twice");
  EXPECT_EQ(refusal([&] { read_plan(program.serialized() + bytes(4, ""), program.expected); }),
            "the executable has field 4, which this cyxla does not know");
  EXPECT_EQ(refusal([] { read_plan(bytes(1, bytes(1, bytes(3, ""))), {}); }),
            "the HLO module with its configuration has field 3, which this cyxla does not know");
  EXPECT_EQ(refusal([] { read_plan(bytes(1, bytes(9, number(4, 1))), {}); }),
            "the target machine has field 4, which this cyxla does not know");
  EXPECT_EQ(refusal([] { read_plan("", {}); }),
            "the object files hold no kernels; they are of kind 0");
}

// Every slice and index of a plan must be inside what it points into.
void expect_valid(const Plan& plan, const Expected& expected) {
  ASSERT_EQ(plan.inputs.size(), expected.input_bytes.size());
  ASSERT_EQ(plan.outputs.size(), expected.output_bytes.size());
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    ASSERT_EQ(plan.allocations.at(plan.outputs[i]).size_bytes, expected.output_bytes[i]);
  }
  for (const Step& step : plan.steps) {
    const auto* kernel = std::get_if<KernelStep>(&step.what);
    ASSERT_NE(kernel, nullptr);
    ASSERT_LT(kernel->kernel, plan.kernels.size());
    for (const Slice& slice : kernel->slices) {
      const std::size_t size_bytes = plan.allocations.at(slice.allocation).size_bytes;
      ASSERT_LE(slice.offset, size_bytes);
      ASSERT_LE(slice.size_bytes, size_bytes - slice.offset);
    }
  }
}

TEST(ReadPlan, CorruptedBytesGiveAValidPlanOrARefusal) {
  const SampleProgram program;
  const std::string serialized = program.serialized();
  int plans = 0;
  int refusals = 0;
  const auto try_bytes = [&](const std::string& corrupted) {
    try {
      expect_valid(read_plan(corrupted, program.expected), program.expected);
      ++plans;
    } catch (const Refusal&) {
      ++refusals;
    }
  };
  for (std::size_t i = 0; i < serialized.size(); ++i) {
    try_bytes(serialized.substr(0, i));
    try_bytes(serialized.substr(0, i) + serialized.substr(i + 1));
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff, serialized[i] ^ 1, serialized[i] + 1}) {
      std::string corrupted = serialized;
      corrupted[i] = static_cast<char>(value);
      try_bytes(corrupted);
    }
  }
  EXPECT_GT(plans, 100);  // names and other bytes without meaning here
  EXPECT_GT(refusals, 1000);
}

}  // namespace
}  // namespace cyxla::direct
