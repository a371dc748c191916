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

constexpr const char* kAdd =
    "input F32[3]\ninput F32[3]\noutput F32[3] add 0 1\noutput F32[] sum 0\n";

struct Discard {
  void operator()(cyxla_call* call) const { discard(call); }
};
using Call = std::unique_ptr<cyxla_call, Discard>;

class PreparedCallTest : public test::RuntimeTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr int kNoViews = 2;

  // The parameter is zero_copy; kNoViews means zero copy on a plugin without views.
  void SetUp() override {
    RuntimeTest::SetUp();
    fake.set(FAKE_PLUGIN_VIEWS, GetParam() == kNoViews ? 2 : 0);
  }
  Call prepare_add(const ProgramReference& program) {
    // Gone after prepare: only the memory that they point to is kept by the caller.
    const std::vector<cyxla_input> inputs = {left.input(PJRT_Buffer_Type_F32),
                                             right.input(PJRT_Buffer_Type_F32)};
    const std::vector<void*> outputs = {added.data(), sum.data()};
    return Call(prepare(&program->spec(), inputs.data(), outputs.data(), GetParam()));
  }

  Array<float> left{{1, 2, 3}};
  Array<float> right{{10, 20, 30}, 4};
  Array<float> added{{0, 0, 0}};
  Array<float> sum{{0}, 4};
};

TEST_P(PreparedCallTest, ReadsAndWritesTheSameMemoryEachTime) {
  const ProgramReference program = compile(kAdd);
  const Call prepared = prepare_add(program);
  ASSERT_NE(prepared, nullptr) << last_message();
  for (int i = 0; i < 5; ++i) {
    const auto value = static_cast<float>(i);
    left.assign({value, value, value});
    ASSERT_EQ(call(prepared.get()), 0) << last_message();
    EXPECT_EQ(added.values(), (std::vector<float>{10 + value, 20 + value, 30 + value}));
    EXPECT_EQ(sum.values(), std::vector<float>{3 * value});
  }
}

TEST_P(PreparedCallTest, AlignedInputsGetOneViewForAllCalls) {
  const ProgramReference program = compile(kAdd);
  const Call prepared = prepare_add(program);
  ASSERT_EQ(call(prepared.get()), 0) << last_message();
  const std::uint64_t views = fake.calls("PJRT_Client_CreateViewOfDeviceBuffer");
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(call(prepared.get()), 0) << last_message();
  }
  EXPECT_EQ(fake.calls("PJRT_Client_CreateViewOfDeviceBuffer"), views);
}

TEST_P(PreparedCallTest, DiscardingGivesEverythingBack) {
  const ProgramReference program = compile(kAdd);
  const std::int64_t live = fake.live();
  for (int i = 0; i < 5; ++i) {
    const Call prepared = prepare_add(program);
    ASSERT_EQ(call(prepared.get()), 0) << last_message();
  }
  EXPECT_EQ(fake.live(), live) << fake.live_by_kind();
}

TEST_P(PreparedCallTest, KeepsItsProgram) {
  ProgramReference program = compile(kAdd);
  Call prepared = prepare_add(program);
  program.reset();
  EXPECT_EQ(call(prepared.get()), 0) << last_message();
  EXPECT_EQ(added.values(), (std::vector<float>{11, 22, 33}));
  prepared.reset();
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 0);
}

TEST_P(PreparedCallTest, SeveralCallsAndExecuteDoNotDisturbEachOther) {
  const ProgramReference program = compile(kAdd);
  const Call first = prepare_add(program);
  const Array<float> others({5, 5, 5});
  const Array<float> result({0, 0, 0});
  const cyxla_input inputs[] = {others.input(PJRT_Buffer_Type_F32),
                                others.input(PJRT_Buffer_Type_F32)};
  void* const outputs[] = {result.data(), nullptr};
  const Call second(prepare(&program->spec(), inputs, outputs, GetParam()));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(call(first.get()), 0);
    ASSERT_EQ(call(second.get()), 0);
    EXPECT_EQ(added.values(), (std::vector<float>{11, 22, 33}));
    EXPECT_EQ(result.values(), (std::vector<float>{10, 10, 10}));
    ASSERT_EQ(execute(&program->spec(), inputs, outputs, GetParam()), 0);
    EXPECT_EQ(result.values(), (std::vector<float>{10, 10, 10}));
  }
}

TEST_P(PreparedCallTest, AfterShutdownItOnlyFails) {
  const ProgramReference program = compile(kAdd);
  const Call prepared = prepare_add(program);
  ASSERT_EQ(call(prepared.get()), 0) << last_message();
  Runtime::shut_down();
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
  EXPECT_EQ(call(prepared.get()), -1);
  EXPECT_EQ(last_message(), "cannot execute the program f: the runtime is shut down");
  EXPECT_EQ(prepare_add(program), nullptr);
  EXPECT_EQ(last_message(), "cannot execute the program f: the runtime is shut down");
}

TEST_P(PreparedCallTest, IsOneThreadsAtATime) {
  const ProgramReference program = compile(kAdd);
  const Call prepared = prepare_add(program);
  // Called again from within itself, as a second thread would.
  fake.on_execute(
      [](void* running) {
        EXPECT_EQ(call(static_cast<cyxla_call*>(running)), -1);
        EXPECT_EQ(last_message(),
                  "a prepared call of the program f is already running on another thread, or "
                  "called again from its own host callback; prepare one for each that runs at a "
                  "time");
      },
      prepared.get());
  EXPECT_EQ(call(prepared.get()), 0) << last_message();
  fake.on_execute(nullptr, nullptr);
  EXPECT_EQ(call(prepared.get()), 0) << last_message();
}

TEST_P(PreparedCallTest, NoInputsAndNoOutputs) {
  const ProgramReference program = compile("");
  const Call prepared(prepare(&program->spec(), nullptr, nullptr, GetParam()));
  ASSERT_NE(prepared, nullptr);
  EXPECT_EQ(call(prepared.get()), 0) << last_message();
}

INSTANTIATE_TEST_SUITE_P(ZeroCopy, PreparedCallTest, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace cyxla::runtime
