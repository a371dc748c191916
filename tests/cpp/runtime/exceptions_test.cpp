// SPDX-License-Identifier: Apache-2.0
// C++ exceptions that a plugin throws, in every one of its functions.
#include <gtest/gtest.h>

#include <string>

#include "support/child_process.h"
#include "support/runtime_test.h"
#include "support/sample_call.h"

namespace cyxla::runtime {
namespace {

using test::last_message;
using test::ProgramReference;
using test::SampleCall;

class ExceptionsTest : public test::RuntimeTest {
 protected:
  // Does everything from loading to shutting down.
  void use_all() {
    try {
      const SampleCall arrays;
      const ProgramReference program = compile(SampleCall::kCode);
      for (const int zero_copy : {0, 1}) {
        static_cast<void>(
            execute(&program->spec(), arrays.inputs.data(), arrays.outputs.data(), zero_copy));
      }
      if (cyxla_call* prepared =
              prepare(&program->spec(), arrays.inputs.data(), arrays.outputs.data(), 1)) {
        static_cast<void>(call(prepared));
        discard(prepared);
      }
    } catch (const Error&) {
    }
    Runtime::shut_down();
  }

  // For every n, the nth call of any function throws, each in its own process.
  template <typename Prepare>
  void sweep(const char* message, Prepare prepare, int least) {
    int positions = 0;
    for (std::string outcome; outcome != "no exception" && !HasFailure(); ++positions) {
      outcome = test::in_child([&]() -> std::string {
        prepare();
        fake.throw_from(nullptr, static_cast<std::uint64_t>(positions) + 1, message);
        const std::uint64_t before = fake.failures();
        use_all();
        return fake.live() != 0 || fake.violations() != 0
                   ? fake.live_by_kind() + fake.recorded(FAKE_PLUGIN_VIOLATION)
               : fake.failures() == before ? "no exception"
                                           : "survived";
      });
      EXPECT_TRUE(outcome == "survived" || outcome == "no exception") << positions << outcome;
    }
    EXPECT_GE(positions, least);
  }
};

TEST_F(ExceptionsTest, EndNoCallAndNoProcess) {
  sweep(
      "burnt", [] {}, 50);
}

TEST_F(ExceptionsTest, OfUnknownTypesEndNoProcessEither) {
  sweep(
      "", [] {}, 50);
}

TEST_F(ExceptionsTest, MayComeOnASlowerPath) {
  sweep(
      "burnt", [&] { fake.set(FAKE_PLUGIN_NOT_ON_CPU, 1); }, 50);
  sweep(
      "burnt", [&] { fake.set(FAKE_PLUGIN_NULL_EXECUTE_EVENTS, 1); }, 50);
}

TEST_F(ExceptionsTest, MayComeWhileAnErrorIsRead) {
  for (const char* function : {"PJRT_Error_Message", "PJRT_Error_GetCode", "PJRT_Error_Destroy"}) {
    const ProgramReference program = compile("");
    fake.fail("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_INTERNAL, "injected");
    fake.throw_from(function, 1, "burnt");
    const std::uint64_t before = fake.failures();
    EXPECT_EQ(execute(&program->spec(), nullptr, nullptr, 0), -1);
    EXPECT_EQ(fake.failures(), before + 2) << function;
    EXPECT_EQ(execute(&program->spec(), nullptr, nullptr, 0), 0) << last_message();
  }
}

TEST_F(ExceptionsTest, AreTheMessageOfTheCall) {
  const ProgramReference program = compile("");
  fake.throw_from("PJRT_LoadedExecutable_Execute", 1, "burnt");
  EXPECT_EQ(execute(&program->spec(), nullptr, nullptr, 0), -1);
  EXPECT_EQ(last_message(),
            "executing the program f failed: PJRT_LoadedExecutable_Execute: the plugin threw a C++ "
            "exception: burnt");
  EXPECT_EQ(last_error_code(), ErrorCode::kExecution);
  fake.throw_from("PJRT_LoadedExecutable_Execute", 1, "");
  EXPECT_EQ(execute(&program->spec(), nullptr, nullptr, 0), -1);
  EXPECT_EQ(last_message(),
            "executing the program f failed: PJRT_LoadedExecutable_Execute: the plugin threw a C++ "
            "exception: not a std::exception");
  fake.throw_from("PJRT_Client_Compile", 1, "");
  EXPECT_EQ(test::message_of(ErrorCode::kCompile, [&] { compile(""); }),
            "PJRT_Client_Compile: the plugin threw a C++ exception: not a std::exception");
}

}  // namespace
}  // namespace cyxla::runtime
