// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "support/child_process.h"
#include "support/sweep.h"

namespace cyxla::runtime {
namespace {

using test::Fault;
using test::in_child;
using test::ProgramReference;
using test::SampleCall;
using test::Tally;

// A process loads one runtime, so each attempt runs in its own process.
class FailuresLoadTest : public test::SweepTest {
 protected:
  static std::string try_to_load() {
    try {
      Runtime::load({.path = test::FakePlugin::path()});
      return "";
    } catch (const Error& error) {
      return error.code() == ErrorCode::kPlugin ? error.what() : "wrong code";
    }
  }

  std::string violation() {
    return fake.violations() == 0 ? "" : fake.recorded(FAKE_PLUGIN_VIOLATION);
  }

  // Uses the runtime and shuts it down. Returns "" or what was wrong.
  std::string use() {
    std::string message;
    try {
      SampleCall call;
      const ProgramReference program = compile(SampleCall::kCode);
      for (int i = 0; i < 6 && message.empty(); ++i) {
        message = call.run(program->spec(), i % 2);
      }
    } catch (const Error& error) {
      message = error.what();
    }
    Runtime::shut_down();
    if (message.empty()) {
      message = violation();
    }
    return message.empty() && fake.live() != 0 ? "left: " + fake.live_by_kind() : message;
  }

  // Loads with a fault, retries if that failed, and uses the runtime. Returns "not reached",
  // "reported", "tolerated" or what was wrong.
  std::string outcome_of(const Fault& fault) {
    fault.plan(fake, GetParam());
    const std::string message = try_to_load();
    const bool happened = fault.happened(fake, GetParam());
    std::string wrong = violation();
    behave();
    if (!wrong.empty()) {
      return wrong;
    }
    if (!message.empty()) {
      wrong = happened ? fault.complaint(message, GetParam()) : message;
      if (!wrong.empty()) {
        return wrong;
      }
      if (fake.live() != 0) {
        return "left by the failure: " + fake.live_by_kind();
      }
      if (wrong = try_to_load(); !wrong.empty()) {
        return "the attempt after: " + wrong;
      }
    }
    wrong = use();
    if (!wrong.empty()) {
      return wrong;
    }
    return !happened ? "not reached" : message.empty() ? "tolerated" : "reported";
  }
};

TEST_P(FailuresLoadTest, Load) {
  Tally tally;
  std::map<std::string, int> reported;
  const std::string called = in_child([&] {
    std::string names = try_to_load();
    const std::string wrong = use();
    for (const std::string& function : fake.functions()) {
      names += fake.calls(function.c_str()) == 0 ? "" : function + " ";
    }
    return names + wrong;
  });
  for (const std::string& function : fake.functions()) {
    if (called.find(function + " ") == std::string::npos) {
      continue;
    }
    for (const Fault::Kind kind : Fault::kKinds) {
      Fault fault{function, kind, 1};
      std::string outcome;
      while (fault.applies(GetParam()) && outcome != "not reached" && !HasFailure()) {
        outcome = in_child([&] { return outcome_of(fault); });
        if (outcome != "not reached") {
          EXPECT_TRUE(outcome == "reported" || outcome == "tolerated")
              << fault.text() << ": " << outcome;
          tally.count(fault, outcome == "reported");
          reported[function] += outcome == "reported" ? 1 : 0;
        }
        ++fault.nth;
      }
    }
  }
  tally.print("load");
  // What the runtime requires. A fault while probing costs only the capability, and attributes and
  // a version that the plugin does not report are empty.
  const int kinds = GetParam().troubled ? 1 : 3;
  EXPECT_EQ(reported["PJRT_Plugin_Initialize"], 1);
  EXPECT_EQ(reported["PJRT_Plugin_Attributes"], 1);
  EXPECT_EQ(reported["PJRT_Client_Create"], kinds);
  EXPECT_EQ(reported["PJRT_Client_PlatformName"], kinds);
  EXPECT_EQ(reported["PJRT_Client_PlatformVersion"], 1);
  EXPECT_EQ(reported["PJRT_Client_AddressableDevices"], kinds);
}

// Shutting down never fails: it continues after every fault and leaves nothing behind.
TEST_P(FailuresLoadTest, ShutDown) {
  const auto outcome_of_shut_down = [&](const Fault& fault) -> std::string {
    SampleCall call;
    std::string message;
    loaded();
    ProgramReference first = compile(SampleCall::kCode);
    ProgramReference second = compile(SampleCall::kCode);
    ProgramReference released = compile(SampleCall::kCode);
    for (int i = 0; i < 4 && message.empty(); ++i) {
      message = call.run((i % 2 == 0 ? first : released)->spec(), 1);
    }
    cyxla_call* prepared = prepare(&first->spec(), call.inputs.data(), call.outputs.data(), 1);
    if (!message.empty() || prepared == nullptr || cyxla::runtime::call(prepared) != 0) {
      return "not even without a fault: " + message + test::last_message();
    }
    behave();
    fault.plan(fake, GetParam());
    released.reset();
    Runtime::shut_down();
    if (fake.live() != 0) {
      return "left: " + fake.live_by_kind();
    }
    const bool happened = fault.happened(fake, GetParam());
    if (cyxla::runtime::call(prepared) != -1 ||
        test::last_message().find("is shut down") == std::string::npos) {
      return "a call after the end: " + test::last_message();
    }
    discard(prepared);
    first.reset();
    second.reset();
    return !violation().empty() ? violation() : happened ? "tolerated" : "not reached";
  };
  Tally tally;
  for (const std::string& function : fake.functions()) {
    std::string outcome;
    for (Fault fault{function, Fault::Kind::kCall, 1};
         fault.applies(GetParam()) && outcome != "not reached" && !HasFailure(); ++fault.nth) {
      outcome = in_child([&] { return outcome_of_shut_down(fault); });
      EXPECT_TRUE(outcome == "tolerated" || outcome == "not reached")
          << fault.text() << ": " << outcome;
      if (outcome == "tolerated") {
        tally.count(fault, false);
      }
    }
  }
  tally.print("shut_down");
  EXPECT_GE(tally.positions, 4);  // three programs and the client
}

// Releasing a program never fails and leaves nothing behind.
TEST_P(FailuresLoadTest, Release) {
  loaded();
  SampleCall call;
  ProgramReference program;
  const Tally tally = sweep("release", {.before =
                                            [&] {
                                              program = compile(SampleCall::kCode);
                                              for (int i = 0; i < 4; ++i) {
                                                EXPECT_EQ(call.run(program->spec(), 1), "");
                                              }
                                            },
                                        .act = [&]() -> std::string {
                                          program.reset();
                                          return "";
                                        }});
  EXPECT_EQ(tally.reported, 0);
  EXPECT_GE(tally.positions, 1);
}

INSTANTIATE_TEST_SUITE_P(Plugins, FailuresLoadTest, ::testing::ValuesIn(test::kPluginKinds),
                         test::kind_name);

}  // namespace
}  // namespace cyxla::runtime
