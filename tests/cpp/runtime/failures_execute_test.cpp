// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "support/sweep.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::last_message;
using test::PluginKind;
using test::ProgramReference;
using test::SampleCall;
using test::signature_of;
using test::Tally;

constexpr const char* kProgram = SampleCall::kCode;

class FailuresExecuteTest : public test::SweepTest {
 protected:
  std::string run(const ProgramReference& program, int zero_copy) {
    return sample_.run(program->spec(), zero_copy);
  }
  // The minimum number of reported faults: one for each kind of function that a call uses.
  int least() const { return GetParam().troubled ? 2 : 4; }

  SampleCall sample_;
};

TEST_P(FailuresExecuteTest, Execute) {
  for (const int zero_copy : {0, 1}) {
    const ProgramReference program = compile(kProgram);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(run(program, zero_copy), "");
    }
    const std::uint64_t count = error_info().count;
    const Tally tally = sweep("execute", {.act = [&] { return run(program, zero_copy); }});
    EXPECT_GE(tally.reported, least());
    EXPECT_EQ(error_info().count - count, static_cast<std::uint64_t>(tally.reported));
  }
}

// A program's first execution on a thread, which makes the context.
TEST_P(FailuresExecuteTest, FirstExecute) {
  loaded();
  for (const int zero_copy : {0, 1}) {
    ProgramReference program;
    const Tally tally = sweep("first_execute", {.before = [&] { program = compile(kProgram); },
                                                .act = [&] { return run(program, zero_copy); },
                                                .after = [&] { program.reset(); }});
    EXPECT_GE(tally.reported, least() + 3);  // three more inputs
  }
}

// Sweeps over many calls.
class FailuresManyCallsTest : public FailuresExecuteTest {};

TEST_P(FailuresManyCallsTest, PrepareCallAndDiscard) {
  const ProgramReference program = compile(kProgram);
  for (const int zero_copy : {0, 1}) {
    const Tally tally = sweep("prepared_call", {.act = [&]() -> std::string {
                                sample_.added.assign({-1, -1, -1});
                                cyxla_call* prepared =
                                    prepare(&program->spec(), sample_.inputs.data(),
                                            sample_.outputs.data(), zero_copy);
                                if (prepared == nullptr) {
                                  return last_message();
                                }
                                std::string message;
                                for (int i = 0; i < 2 && message.empty(); ++i) {
                                  message = call(prepared) == 0 ? sample_.check() : last_message();
                                }
                                discard(prepared);
                                return message;
                              }});
    EXPECT_GE(tally.reported, least() + 3);
  }
}

// Inputs change from copied to viewed and back, so that views are made and destroyed.
TEST_P(FailuresManyCallsTest, ChangingInputs) {
  const ProgramReference program = compile(kProgram);
  const Array<float> others({1, 2, 3});
  const std::vector<cyxla_input> first = sample_.inputs;
  const auto run_all = [&]() -> std::string {
    std::string message;
    for (int i = 0; i < 6 && message.empty(); ++i) {
      sample_.inputs[0] = i / 2 == 1 ? others.input(PJRT_Buffer_Type_F32) : first[0];
      message = run(program, 1);
    }
    return message;
  };
  ASSERT_EQ(run_all(), "");
  EXPECT_GE(sweep("changing_inputs", {.act = run_all}).reported, 10);
}

// More arrays than kept views: each call replaces one.
TEST_P(FailuresManyCallsTest, MovingAddresses) {
  ProgramReference program = compile(kProgram);
  std::vector<Array<float>> arrays;
  for (int i = 0; i < 6; ++i) {
    arrays.emplace_back(std::vector<float>{1, 2, 3});
  }
  const auto run_all = [&]() -> std::string {
    std::string message;
    for (std::size_t i = 0; i < 2 * arrays.size() && message.empty(); ++i) {
      sample_.inputs[0] = arrays[i / 2].input(PJRT_Buffer_Type_F32);
      message = run(program, 1);
    }
    return message;
  };
  ASSERT_EQ(run_all(), "");
  program.reset();
  EXPECT_GE(sweep("moving_addresses", {.before = [&] { program = compile(kProgram); },
                                       .act = run_all,
                                       .after = [&] { program.reset(); }})
                .reported,
            20);
}

INSTANTIATE_TEST_SUITE_P(Plugins, FailuresManyCallsTest,
                         ::testing::ValuesIn(test::kPluginKinds,
                                             test::kPluginKinds + test::kQuickKinds),
                         test::kind_name);

// The second output takes a destination: a donated argument after the input.
TEST_P(FailuresExecuteTest, OutputsInPlace) {
  constexpr const char* kInPlace =
      "# tf.aliasing_output\n"
      "input F32[4]\n"
      "input F32[4]\n"
      "output F32[4] scale 0 2\n"
      "output F32[4] scale 0 3 into 1\n";
  Signature signature = signature_of(kInPlace);
  signature.inputs.pop_back();
  signature.in_place_outputs = {1};
  const ProgramReference program = loaded().compile(test::request_of(kInPlace, signature)).program;
  const Array<float> input({1, 2, 3, 4});
  const std::vector<cyxla_input> inputs{input.input(PJRT_Buffer_Type_F32)};
  const Array<float> doubled({0, 0, 0, 0});
  const std::int64_t live = fake.live();
  for (const std::size_t offset : {0U, 4U}) {
    Array<float> tripled({0, 0, 0, 0}, offset);
    void* const outputs[] = {doubled.data(), tripled.data()};
    const auto act = [&]() -> std::string {
      tripled.assign({-1, -1, -1, -1});
      if (execute(&program->spec(), inputs.data(), outputs, 1) != 0) {
        return last_message();
      }
      return doubled.values() == std::vector<float>{2, 4, 6, 8} &&
                     tripled.values() == std::vector<float>{3, 6, 9, 12}
                 ? ""
                 : "wrong results";
    };
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(act(), "");
    }
    EXPECT_GE(sweep("in_place", {.act = act}).reported, least());
    EXPECT_LE(fake.live(), live + 2)
        << fake.live_by_kind();  // two of the input, none of the destination
  }
}

// A callback on one of the plugin's own threads would wait for itself.
class FailuresNestedTest : public FailuresExecuteTest {};

// A program that calls itself from within the plugin, as a callback may.
TEST_P(FailuresNestedTest, CallsWithinCalls) {
  static const cyxla_program_spec* inner = nullptr;
  static SampleCall* inner_call = nullptr;
  static std::string inner_message;
  static int depth = 0;
  const ProgramReference program = compile(kProgram);
  SampleCall nested;
  inner = &program->spec();
  inner_call = &nested;
  const auto callback = [](void* /*unused*/) {
    if (depth++ == 0) {
      inner_message = inner_call->run(*inner, 1);
    }
    --depth;
  };
  const auto act = [&]() -> std::string {
    inner_message.clear();
    fake.on_execute(callback, nullptr);
    const std::string message = run(program, 1);
    fake.on_execute(nullptr, nullptr);
    return message.empty() ? inner_message : message;
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(act(), "");
  }
  EXPECT_GE(sweep("nested_call", {.act = act}).reported, 2 * least());
}

INSTANTIATE_TEST_SUITE_P(Plugins, FailuresNestedTest,
                         ::testing::ValuesIn(test::kPluginKinds,
                                             test::kPluginKinds + test::kSynchronousKinds),
                         test::kind_name);

TEST_P(FailuresExecuteTest, AFailingProgramNeverBreaksTheNextCall) {
  const ProgramReference failing =
      compile("input F32[3]\noutput F32[3] copy 0\noutput F32[] fail INTERNAL not a number\n");
  const ProgramReference working = compile(kProgram);
  void* const outputs[] = {sample_.added.data(), sample_.sum.data()};
  std::int64_t live = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(execute(&failing->spec(), sample_.inputs.data(), outputs, 1), -1);
    EXPECT_EQ(last_message(),
              "executing the program f failed: PJRT_Event_Await: INTERNAL: not a number");
    EXPECT_EQ(run(working, 1), "");
    if (i == 3) {
      live = fake.live();  // by now the inputs have views
    }
  }
  EXPECT_EQ(fake.live(), live) << fake.live_by_kind();
}

INSTANTIATE_TEST_SUITE_P(Plugins, FailuresExecuteTest, ::testing::ValuesIn(test::kPluginKinds),
                         test::kind_name);

// A failure leaves the caller's results unchanged, and its message names the program, the input
// or output, and the function.
class FailuresMessageTest : public FailuresExecuteTest {};

TEST_P(FailuresMessageTest, MessagesSayWhereAndWhat) {
  const ProgramReference program = compile(kProgram, "model");
  fake.fail("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_RESOURCE_EXHAUSTED, "too large");
  EXPECT_EQ(run(program, 1),
            "executing the program model failed: PJRT_LoadedExecutable_Execute: "
            "RESOURCE_EXHAUSTED: too large");
  fake.fail_event(
      GetParam().null_events != 0 ? "PJRT_Buffer_ReadyEvent" : "PJRT_LoadedExecutable_Execute", 1,
      PJRT_Error_Code_INTERNAL, "burnt");
  EXPECT_EQ(run(program, 1),
            "executing the program model failed: PJRT_Event_Await: INTERNAL: burnt");
  EXPECT_EQ(sample_.added.values(), (std::vector<float>{-1, -1, -1}));
  EXPECT_EQ(last_error_code(), ErrorCode::kExecution);

  const bool aliases = GetParam().views == 0 && GetParam().not_on_cpu == 0;
  const std::string to_device =
      aliases ? "PJRT_Client_CreateViewOfDeviceBuffer" : "PJRT_Client_BufferFromHostBuffer";
  const std::string to_host =
      GetParam().not_on_cpu == 0 ? "PJRT_Buffer_UnsafePointer" : "PJRT_Buffer_ToHostBuffer";
  const ProgramReference fresh = compile(kProgram, "model");
  fake.fail(to_device.c_str(), 2, PJRT_Error_Code_INTERNAL, "no room");
  EXPECT_EQ(run(fresh, 1),
            "passing input 1 of the program model failed: " + to_device + ": INTERNAL: no room");
  fake.fail(to_host.c_str(), 2, PJRT_Error_Code_INTERNAL, "unreadable");
  EXPECT_EQ(run(fresh, 1),
            "reading output 1 of the program model failed: " + to_host + ": INTERNAL: unreadable");
  fake.hollow("PJRT_LoadedExecutable_Execute", 1, false);
  EXPECT_EQ(run(fresh, 1),
            "executing the program model failed: PJRT_LoadedExecutable_Execute: the plugin "
            "reported success but gave no buffer for an output");
  EXPECT_EQ(run(fresh, 1), "");
}

INSTANTIATE_TEST_SUITE_P(Plugins, FailuresMessageTest,
                         ::testing::ValuesIn(test::kPluginKinds,
                                             test::kPluginKinds + test::kUntroubledKinds),
                         test::kind_name);

}  // namespace
}  // namespace cyxla::runtime
