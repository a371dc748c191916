// SPDX-License-Identifier: Apache-2.0
#include "pjrt/invocation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

constexpr const char* kAddProgram =
    "input F32[2]\n"
    "input F32[2]\n"
    "output F32[2] add 0 1\n"
    "output F32[] sum 0\n";

class InvocationTest : public test::PjrtTest {
 protected:
  Buffer floats(const std::vector<float>& values) {
    return copy(PJRT_Buffer_Type_F32, {static_cast<std::int64_t>(values.size())}, values);
  }
  std::vector<float> output(const Invocation& invocation, std::size_t index,
                            const std::vector<std::int64_t>& dimensions) {
    return read<float>(invocation.output(index), PJRT_Buffer_Type_F32, dimensions);
  }
  // Runs the adding program and checks the result.
  void expect_sum(Invocation& invocation) {
    const Status status = invocation.run();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(output(invocation, 0, {2}), (std::vector<float>{11, 22}));
    EXPECT_EQ(output(invocation, 1, {}), std::vector<float>{3});
    invocation.release_outputs();
  }
};

TEST_F(InvocationTest, ComputesAndGivesItsOutputs) {
  const LoadedExecutable executable = compile(kAddProgram);
  const Buffer left = floats({1, 2});
  const Buffer right = floats({10, 20});
  Invocation invocation(api(), executable, 2, 2);
  invocation.set_argument(0, left.get());
  invocation.set_argument(1, right.get());
  for (int i = 0; i < 3; ++i) {
    expect_sum(invocation);
    EXPECT_EQ(fake.live(FAKE_PLUGIN_BUFFER), 2);
    EXPECT_EQ(fake.live(FAKE_PLUGIN_EVENT), 0);
  }
}

TEST_F(InvocationTest, TheSameBufferMayBeTwoArguments) {
  const LoadedExecutable executable = compile(kAddProgram);
  const Buffer both = floats({1, 2});
  Invocation invocation(api(), executable, 2, 2);
  invocation.set_argument(0, both.get());
  invocation.set_argument(1, both.get());
  ASSERT_TRUE(invocation.run().ok());
  EXPECT_EQ(output(invocation, 0, {2}), (std::vector<float>{2, 4}));
}

TEST_F(InvocationTest, NoArgumentsAndNoOutputs) {
  const LoadedExecutable nothing = compile("");
  Invocation invocation(api(), nothing, 0, 0);
  EXPECT_TRUE(invocation.run().ok());
  const LoadedExecutable constant = compile("output F32[] fill 8");
  Invocation without_arguments(api(), constant, 0, 1);
  ASSERT_TRUE(without_arguments.run().ok());
  EXPECT_EQ(output(without_arguments, 0, {}), std::vector<float>{8});
}

TEST_F(InvocationTest, NoArgumentMayBeDonated) {
  fake.set(FAKE_PLUGIN_RECORD_EXECUTIONS, 1);
  const LoadedExecutable executable = compile(kAddProgram);
  const Buffer both = floats({1, 2});
  Invocation invocation(api(), executable, 2, 2);
  invocation.set_argument(0, both.get());
  invocation.set_argument(1, both.get());
  ASSERT_TRUE(invocation.run().ok());
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_NON_DONATABLE), "0 1");
}

TEST_F(InvocationTest, OutputsThatWereNotReleasedAreReleasedAtTheEnd) {
  const LoadedExecutable executable = compile("output F32[] fill 1\noutput F32[2] iota");
  {
    Invocation invocation(api(), executable, 0, 2);
    ASSERT_TRUE(invocation.run().ok());
    EXPECT_EQ(fake.live(FAKE_PLUGIN_BUFFER), 2);
  }
  EXPECT_EQ(fake.live(FAKE_PLUGIN_BUFFER), 0);
}

TEST_F(InvocationTest, AFailingExecuteIsAnErrorWithoutOutputs) {
  const LoadedExecutable executable = compile("output F32[] fill 1");
  Invocation invocation(api(), executable, 0, 1);
  fake.fail("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_RESOURCE_EXHAUSTED, "too much");
  EXPECT_EQ(invocation.run().message(), "too much");
  EXPECT_EQ(invocation.output(0), nullptr);
  EXPECT_EQ(fake.calls("PJRT_Event_Await"), 0U);
  EXPECT_TRUE(invocation.run().ok());
}

TEST_F(InvocationTest, AnEventWithAnErrorIsAnErrorWithoutOutputs) {
  const LoadedExecutable executable = compile("output F32[] fill 1");
  Invocation invocation(api(), executable, 0, 1);
  fake.fail_event("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_INTERNAL, "burnt");
  EXPECT_EQ(invocation.run().message(), "burnt");
  EXPECT_EQ(invocation.output(0), nullptr);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_BUFFER), 0);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_EVENT), 0);
  EXPECT_TRUE(invocation.run().ok());
}

TEST_F(InvocationTest, AProgramThatFailsWhileItRunsIsAnError) {
  const LoadedExecutable executable = compile("output F32[] fail INTERNAL division by something");
  for (const int asynchronous : {0, 1}) {
    for (const int null_events : {0, 1}) {
      fake.set(FAKE_PLUGIN_ASYNCHRONOUS, asynchronous);
      fake.set(FAKE_PLUGIN_NULL_EXECUTE_EVENTS, null_events);
      Invocation invocation(api(), executable, 0, 1);
      EXPECT_EQ(invocation.run().message(), "division by something");
      EXPECT_EQ(invocation.output(0), nullptr);
      EXPECT_EQ(fake.live(FAKE_PLUGIN_BUFFER), 0);
    }
  }
}

// Inputs may change and outputs may be read as soon as run() returns.
TEST_F(InvocationTest, WaitsForTheEndOfTheWork) {
  fake.set(FAKE_PLUGIN_ASYNCHRONOUS, 1);
  const LoadedExecutable executable = compile(kAddProgram);
  const Buffer left = floats({1, 2});
  const Buffer right = floats({10, 20});
  Invocation invocation(api(), executable, 2, 2);
  invocation.set_argument(0, left.get());
  invocation.set_argument(1, right.get());
  fake.set(FAKE_PLUGIN_DELAY_US, 20000);
  expect_sum(invocation);
  EXPECT_EQ(fake.running(), 0);
}

// Without an event for the execution, the outputs' events are awaited.
TEST_F(InvocationTest, WithoutAnEventTheOutputsAreAwaited) {
  fake.set(FAKE_PLUGIN_NULL_EXECUTE_EVENTS, 1);
  const LoadedExecutable executable = compile(kAddProgram);
  const Buffer left = floats({1, 2});
  const Buffer right = floats({10, 20});
  for (const int asynchronous : {0, 1}) {
    fake.set(FAKE_PLUGIN_ASYNCHRONOUS, asynchronous);
    fake.set(FAKE_PLUGIN_DELAY_US, 20000 * asynchronous);
    Invocation invocation(api(), executable, 2, 2);
    invocation.set_argument(0, left.get());
    invocation.set_argument(1, right.get());
    expect_sum(invocation);
    EXPECT_EQ(fake.running(), 0);
  }
}

TEST_F(InvocationTest, WithoutAnEventAFailingReadyEventIsAnError) {
  fake.set(FAKE_PLUGIN_NULL_EXECUTE_EVENTS, 1);
  const LoadedExecutable executable = compile("output F32[] fill 1\noutput F32[] fill 2");
  for (const std::uint64_t nth : {1U, 2U}) {
    Invocation invocation(api(), executable, 0, 2);
    fake.fail("PJRT_Buffer_ReadyEvent", nth, PJRT_Error_Code_INTERNAL, "not ready");
    EXPECT_EQ(invocation.run().message(), "not ready");
    EXPECT_EQ(invocation.output(0), nullptr);
    fake.reset();
    fake.set(FAKE_PLUGIN_NULL_EXECUTE_EVENTS, 1);
    fake.fail_event("PJRT_Buffer_ReadyEvent", nth, PJRT_Error_Code_INTERNAL, "never ready");
    EXPECT_EQ(invocation.run().message(), "never ready");
    EXPECT_EQ(fake.live(FAKE_PLUGIN_BUFFER), 0);
    EXPECT_TRUE(invocation.run().ok());
  }
}

TEST_F(InvocationTest, TheWrongNumberOfArgumentsIsThePluginsError) {
  const LoadedExecutable executable = compile(kAddProgram);
  Invocation invocation(api(), executable, 1, 2);
  const Buffer only = floats({1, 2});
  invocation.set_argument(0, only.get());
  EXPECT_EQ(invocation.run().message(), "1 arguments given, 2 expected");
}

}  // namespace
}  // namespace cyxla::pjrt
