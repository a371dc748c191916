// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::last_message;
using test::ProgramReference;

// Counts an execution's plugin calls, on a plugin whose buffers alias host memory.
class ViewsTest : public test::RuntimeTest {
 protected:
  std::uint64_t views() const { return fake.calls("PJRT_Client_CreateViewOfDeviceBuffer"); }
  // Executes, expects `result`, and returns the number of views that were made.
  std::uint64_t run(const ProgramReference& program, const Array<float>& input, int zero_copy,
                    const std::vector<float>& expected) {
    const std::uint64_t before = views();
    const Array<float> result(std::vector<float>(expected.size(), -1));
    const cyxla_input inputs[] = {input.input(PJRT_Buffer_Type_F32)};
    void* const outputs[] = {result.data()};
    EXPECT_EQ(execute(&program->spec(), inputs, outputs, zero_copy), 0) << last_message();
    EXPECT_EQ(result.values(), expected);
    return views() - before;
  }
};

constexpr const char* kSmall = "input F32[3]\noutput F32[3] scale 0 2\n";
constexpr const char* kLarge = "input F32[16384]\noutput F32[16384] scale 0 2\n";

TEST_F(ViewsTest, ViewsAreKeptForTheSameAddress) {
  const ProgramReference program = compile(kSmall);
  Array<float> input({1, 2, 3});
  run(program, input, 1, {2, 4, 6});
  run(program, input, 1, {2, 4, 6});
  for (int i = 0; i < 10; ++i) {
    const auto value = static_cast<float>(i);
    input.assign({value, value, value});
    EXPECT_EQ(run(program, input, 1, {2 * value, 2 * value, 2 * value}), 0U);
  }
  EXPECT_EQ(fake.calls("PJRT_Client_BufferFromHostBuffer"), 1U);  // the probe's
}

TEST_F(ViewsTest, ARepeatedAddressIsReadInPlace) {
  const ProgramReference program = compile(kSmall);
  const Array<float> input({1, 2, 3});
  run(program, input, 1, {2, 4, 6});
  run(program, input, 1, {2, 4, 6});
  // Written while the program runs: only a program that reads the memory itself sees it.
  fake.on_execute([](void* data) { static_cast<float*>(data)[0] = 50; }, input.data());
  run(program, input, 1, {100, 4, 6});
}

TEST_F(ViewsTest, WithoutZeroCopyInputsAreCopiedFirst) {
  const ProgramReference program = compile(kSmall);
  const Array<float> input({1, 2, 3});
  for (int i = 0; i < 4; ++i) {
    run(program, input, 0, {2, 4, 6});
  }
  fake.on_execute([](void* data) { static_cast<float*>(data)[0] = 50; }, input.data());
  EXPECT_EQ(run(program, input, 0, {2, 4, 6}), 0U);
  EXPECT_EQ(run(program, input, 0, {100, 4, 6}), 0U);
}

// Solvers swap the old state with the new.
TEST_F(ViewsTest, ArraysThatAlternateNeedNoNewViews) {
  for (const char* code : {kSmall, kLarge}) {
    const ProgramReference program = compile(code);
    const std::size_t size = code == kSmall ? 3 : 16384;
    std::vector<Array<float>> arrays;
    for (int i = 0; i < 4; ++i) {
      arrays.emplace_back(std::vector<float>(size, static_cast<float>(i)));
    }
    for (int round = 0; round < 4; ++round) {
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        const std::uint64_t made =
            run(program, arrays[i], 1, std::vector<float>(size, 2 * static_cast<float>(i)));
        EXPECT_TRUE(round < 2 || made == 0U) << code << round;
      }
    }
    // By now the program reads all of them from their own memory.
    fake.on_execute([](void* data) { static_cast<float*>(data)[0] = 50; }, arrays[1].data());
    std::vector<float> doubled(size, 2);
    doubled[0] = 100;
    run(program, arrays[1], 1, doubled);
    fake.on_execute(nullptr, nullptr);
  }
}

TEST_F(ViewsTest, LargeInputsAreReadInPlaceAtOnce) {
  const ProgramReference program = compile(kLarge);
  const Array<float> input(std::vector<float>(16384, 1));
  EXPECT_EQ(run(program, input, 1, std::vector<float>(16384, 2)), 1U);
  EXPECT_EQ(run(program, input, 1, std::vector<float>(16384, 2)), 0U);
}

TEST_F(ViewsTest, MisalignedInputsNeedNoNewViews) {
  const ProgramReference program = compile(kLarge);
  const std::vector<float> doubled(16384, 2);
  const Array<float> first(std::vector<float>(16384, 1), 4);
  const Array<float> second(std::vector<float>(16384, 1), 32);
  run(program, first, 1, doubled);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(run(program, i % 2 == 0 ? second : first, 1, doubled), 0U);
  }
}

// Views of freed arrays must not accumulate.
TEST_F(ViewsTest, MovingInputsKeepTheNumberOfViewsSmall) {
  const ProgramReference program = compile(kLarge);
  for (int i = 0; i < 50; ++i) {
    const Array<float> input(std::vector<float>(16384, static_cast<float>(i)));
    run(program, input, 1, std::vector<float>(16384, static_cast<float>(2 * i)));
  }
  EXPECT_LE(fake.live(FAKE_PLUGIN_VIEW), 5) << fake.live_by_kind();
}

// A kept view may point to freed memory; the next call with another array must not touch it.
TEST_F(ViewsTest, MemoryMayBeFreedBetweenCalls) {
  const ProgramReference program = compile(kSmall);
  {
    const Array<float> input({1, 2, 3});
    for (int i = 0; i < 3; ++i) {
      run(program, input, 1, {2, 4, 6});
    }
  }
  const Array<float> other({4, 5, 6}, 4);
  run(program, other, 1, {8, 10, 12});
  run(program, other, 0, {8, 10, 12});
}

TEST_F(ViewsTest, OutputsAreReadFromTheirMemory) {
  const ProgramReference program = compile(kSmall);
  const Array<float> input({1, 2, 3});
  loaded();
  const std::uint64_t copies = fake.calls("PJRT_Buffer_ToHostBuffer");
  const std::uint64_t pointers = fake.calls("PJRT_Buffer_UnsafePointer");
  run(program, input, 1, {2, 4, 6});
  EXPECT_EQ(fake.calls("PJRT_Buffer_ToHostBuffer"), copies);
  EXPECT_EQ(fake.calls("PJRT_Buffer_UnsafePointer"), pointers + 1);
}

TEST_F(ViewsTest, DroppedOutputsAreNotRead) {
  const ProgramReference program = compile("output F32[3] iota\noutput F32[3] iota\n");
  loaded();
  const std::uint64_t pointers = fake.calls("PJRT_Buffer_UnsafePointer");
  void* const outputs[] = {nullptr, nullptr};
  EXPECT_EQ(execute(&program->spec(), nullptr, outputs, 1), 0);
  EXPECT_EQ(fake.calls("PJRT_Buffer_UnsafePointer"), pointers);
}

// Inputs belong to the caller. Programs that do not mark inputs as donated cannot take them, so the
// call does not mention donation.
TEST_F(ViewsTest, InputsOfAProgramThatMarksDonationMayNotBeDonated) {
  fake.set(FAKE_PLUGIN_RECORD_EXECUTIONS, 1);
  const std::string code = "input F32[3]\ninput F32[3]\noutput F32[3] add 0 1\n";
  const Array<float> both({1, 2, 3});
  const cyxla_input inputs[] = {both.input(PJRT_Buffer_Type_F32), both.input(PJRT_Buffer_Type_F32)};
  void* const outputs[] = {nullptr};
  for (const char* mark : {"# tf.aliasing_output = 0\n", "# jax.buffer_donor = true\n"}) {
    const ProgramReference program = compile(mark + code);
    ASSERT_EQ(execute(&program->spec(), inputs, outputs, 1), 0) << last_message();
    EXPECT_EQ(fake.recorded(FAKE_PLUGIN_NON_DONATABLE), "0 1") << mark;
  }
  const ProgramReference program = compile(code);
  ASSERT_EQ(execute(&program->spec(), inputs, outputs, 1), 0) << last_message();
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_NON_DONATABLE), "");
}

// The calls of a warm execution: the execution, its event, and its outputs.
TEST_F(ViewsTest, ACallCostsNoMoreThanItMust) {
  const ProgramReference program = compile(kSmall);
  const Array<float> input({1, 2, 3});
  for (int i = 0; i < 3; ++i) {
    run(program, input, 1, {2, 4, 6});
  }
  const std::uint64_t before = fake.all_calls();
  run(program, input, 1, {2, 4, 6});
  EXPECT_EQ(fake.all_calls() - before, 5U);  // Execute, Await, two Destroys, UnsafePointer
}

}  // namespace
}  // namespace cyxla::runtime
