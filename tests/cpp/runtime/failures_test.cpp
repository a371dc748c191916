// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::last_message;
using test::ProgramReference;
using test::signature_of;

constexpr const char* kProgram =
    "input F32[3]\n"
    "input F32[3]\n"
    "input F32[0]\n"
    "output F32[3] add 0 1\n"
    "output F32[] sum 0\n"
    "output F32[0] copy 2\n";

struct Plugin {
  const char* name;
  int views;
  int not_on_cpu;
  int asynchronous;
  int null_events;
};

constexpr Plugin kPlugins[] = {{"aliasing", 0, 0, 0, 0},
                               {"without_views", 2, 0, 0, 0},
                               {"on_a_device", 0, 1, 0, 0},
                               {"asynchronous", 0, 0, 1, 0},
                               {"without_events", 0, 0, 1, 1}};

// Whichever call of the plugin fails, at whichever time: the caller gets an error or is not
// concerned, nothing is left behind, and the next attempt works.
class FailuresTest : public test::RuntimeTest, public ::testing::WithParamInterface<Plugin> {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    behave();
  }

  void behave() {
    fake.reset();
    fake.set(FAKE_PLUGIN_VIEWS, GetParam().views);
    fake.set(FAKE_PLUGIN_NOT_ON_CPU, GetParam().not_on_cpu);
    fake.set(FAKE_PLUGIN_ASYNCHRONOUS, GetParam().asynchronous);
    fake.set(FAKE_PLUGIN_NULL_EXECUTE_EVENTS, GetParam().null_events);
    fake.set(FAKE_PLUGIN_NULL_COPY_EVENTS, GetParam().null_events);
  }

  struct Attempt {
    std::function<void()> before = [] {};
    std::function<std::string()> act;  // gives "" or the message of its failure
    std::function<void()> after = [] {};
  };

  // Acts with the nth call (or event) of each function failing, for growing n until nothing fails
  // any more, and each time once more without a failure. Gives the number of failures that were
  // reported.
  int sweep(const Attempt& attempt) {
    int reported = 0;
    for (const std::string& function : fake.functions()) {
      for (const bool event : {false, true}) {
        bool failed = true;
        for (std::uint64_t nth = 1; failed && !HasFailure(); ++nth) {
          const std::string where = function + (event ? " event " : " call ") + std::to_string(nth);
          const std::int64_t live = fake.live();
          attempt.before();
          if (event) {
            fake.fail_event(function.c_str(), nth, PJRT_Error_Code_INTERNAL, "injected");
          } else {
            fake.fail(function.c_str(), nth, PJRT_Error_Code_INTERNAL, "injected");
          }
          const std::string message = attempt.act();
          failed = fake.failures() != 0;
          if (!message.empty()) {
            ++reported;
            EXPECT_TRUE(failed) << where << ": " << message;
            EXPECT_NE(message.find("injected"), std::string::npos) << where << ": " << message;
          }
          EXPECT_EQ(fake.violations(), 0U) << where << ": " << fake.recorded(FAKE_PLUGIN_VIOLATION);
          behave();
          EXPECT_EQ(attempt.act(), "") << "the attempt after " << where;
          attempt.after();
          EXPECT_EQ(fake.live(), live) << where << ": " << fake.live_by_kind();
        }
      }
    }
    return reported;
  }

  // Executes with an aligned and a misaligned input and checks the results.
  std::string run(const ProgramReference& program, int zero_copy) {
    added_.assign({-1, -1, -1});
    if (execute(&program->spec(), inputs_.data(), outputs_.data(), zero_copy) != 0) {
      return last_message();
    }
    return check();
  }
  std::string check() const {
    return added_.values() == std::vector<float>{11, 22, 33} &&
                   sum_.values() == std::vector<float>{6}
               ? ""
               : "wrong results";
  }

  Array<float> left_{{1, 2, 3}};
  Array<float> right_{{10, 20, 30}, 4};
  Array<float> added_{{0, 0, 0}};
  Array<float> sum_{{0}};
  std::vector<cyxla_input> inputs_ = {left_.input(PJRT_Buffer_Type_F32),
                                      right_.input(PJRT_Buffer_Type_F32),
                                      {nullptr, PJRT_Buffer_Type_F32, 0}};
  std::vector<void*> outputs_ = {added_.data(), sum_.data(), nullptr};
};

TEST_P(FailuresTest, Compile) {
  loaded();
  const int reported = sweep({.act = [&]() -> std::string {
    try {
      CompileStatistics statistics;
      const ProgramReference program(
          loaded().compile(kProgram, "fake", {}, signature_of(kProgram), statistics));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCompile);
      return error.what();
    }
  }});
  // Compile, GetExecutable for five questions, and the three questions about outputs; what is only
  // told as statistics is left out instead.
  EXPECT_EQ(reported, 9);
}

TEST_P(FailuresTest, LoadCompiled) {
  CompileStatistics statistics;
  std::string serialized;
  ProgramReference(
      loaded().compile(kProgram, "fake", {}, signature_of(kProgram), statistics, {}, &serialized));
  const int reported = sweep({.act = [&]() -> std::string {
    try {
      const ProgramReference program(loaded().load_compiled(serialized, signature_of(kProgram)));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCompile);
      return error.what();
    }
  }});
  // DeserializeAndLoad, GetExecutable for the outputs, and the three questions about these.
  EXPECT_EQ(reported, 5);
}

TEST_P(FailuresTest, Execute) {
  for (const int zero_copy : {0, 1}) {
    const ProgramReference program = compile(kProgram);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(run(program, zero_copy), "");
    }
    const std::uint64_t count = error_info().count;
    const int reported = sweep({.act = [&] { return run(program, zero_copy); }});
    EXPECT_GE(reported, 4);
    EXPECT_EQ(error_info().count - count, static_cast<std::uint64_t>(reported));
  }
}

// The first execution of a program on a thread, where everything is made.
TEST_P(FailuresTest, FirstExecute) {
  loaded();
  for (const int zero_copy : {0, 1}) {
    ProgramReference program;
    const int reported = sweep({.before = [&] { program = compile(kProgram); },
                                .act = [&] { return run(program, zero_copy); },
                                .after = [&] { program.reset(); }});
    EXPECT_GE(reported, 7);  // three inputs more
  }
}

TEST_P(FailuresTest, PrepareCallAndDiscard) {
  const ProgramReference program = compile(kProgram);
  for (const int zero_copy : {0, 1}) {
    const int reported = sweep({.act = [&]() -> std::string {
      added_.assign({-1, -1, -1});
      cyxla_call* prepared = prepare(&program->spec(), inputs_.data(), outputs_.data(), zero_copy);
      if (prepared == nullptr) {
        return last_message();
      }
      std::string message;
      for (int i = 0; i < 2 && message.empty(); ++i) {
        message = call(prepared) == 0 ? check() : last_message();
      }
      discard(prepared);
      return message;
    }});
    EXPECT_GE(reported, 7);
  }
}

// A change of inputs from copied to viewed and back, so that views are made and dropped on the way.
TEST_P(FailuresTest, ChangingInputs) {
  const ProgramReference program = compile(kProgram);
  const Array<float> others({1, 2, 3});
  const std::vector<cyxla_input> first = inputs_;
  const auto run_all = [&]() -> std::string {
    std::string message;
    for (int i = 0; i < 6 && message.empty(); ++i) {
      inputs_[0] = i / 2 == 1 ? others.input(PJRT_Buffer_Type_F32) : first[0];
      message = run(program, 1);
    }
    return message;
  };
  ASSERT_EQ(run_all(), "");
  EXPECT_GE(sweep({.act = run_all}), 10);
}

// Failures leave the results alone that the caller had, and name the program and the place.
TEST_P(FailuresTest, MessagesSayWhereAndWhat) {
  const ProgramReference program = compile(kProgram, "model");
  fake.fail("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_RESOURCE_EXHAUSTED, "too large");
  EXPECT_EQ(run(program, 1), "executing the program model failed: too large");
  fake.fail_event(
      GetParam().null_events != 0 ? "PJRT_Buffer_ReadyEvent" : "PJRT_LoadedExecutable_Execute", 1,
      PJRT_Error_Code_INTERNAL, "burnt");
  EXPECT_EQ(run(program, 1), "executing the program model failed: burnt");
  EXPECT_EQ(added_.values(), (std::vector<float>{-1, -1, -1}));
  EXPECT_EQ(last_error_code(), ErrorCode::kExecution);

  const bool aliases = GetParam().views == 0 && GetParam().not_on_cpu == 0;
  const bool reads_in_place = GetParam().not_on_cpu == 0;
  const ProgramReference fresh = compile(kProgram, "model");
  fake.fail(aliases ? "PJRT_Client_CreateViewOfDeviceBuffer" : "PJRT_Client_BufferFromHostBuffer",
            2, PJRT_Error_Code_INTERNAL, "no room");
  EXPECT_EQ(run(fresh, 1), "passing input 1 of the program model failed: no room");
  fake.fail(reads_in_place ? "PJRT_Buffer_UnsafePointer" : "PJRT_Buffer_ToHostBuffer", 2,
            PJRT_Error_Code_INTERNAL, "unreadable");
  EXPECT_EQ(run(fresh, 1), "reading output 1 of the program model failed: unreadable");
  EXPECT_EQ(run(fresh, 1), "");
}

TEST_P(FailuresTest, AFailingProgramNeverBreaksTheNextCall) {
  const ProgramReference failing =
      compile("input F32[3]\noutput F32[3] copy 0\noutput F32[] fail INTERNAL not a number\n");
  const ProgramReference working = compile(kProgram);
  void* const outputs[] = {added_.data(), sum_.data()};
  std::int64_t live = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(execute(&failing->spec(), inputs_.data(), outputs, 1), -1);
    EXPECT_EQ(last_message(), "executing the program f failed: not a number");
    EXPECT_EQ(run(working, 1), "");
    if (i == 3) {
      live = fake.live();  // the views of the inputs are made by now
    }
  }
  EXPECT_EQ(fake.live(), live) << fake.live_by_kind();
}

INSTANTIATE_TEST_SUITE_P(Plugins, FailuresTest, ::testing::ValuesIn(kPlugins),
                         [](const auto& plugin) { return std::string(plugin.param.name); });

}  // namespace
}  // namespace cyxla::runtime
