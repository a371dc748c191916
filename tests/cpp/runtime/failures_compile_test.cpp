// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "support/ffi_handlers.h"
#include "support/sweep.h"

namespace cyxla::runtime {
namespace {

using test::ProgramReference;
using test::SampleCall;
using test::signature_of;
using test::Tally;

// The operations between loading and executing.
class FailuresCompileTest : public test::SweepTest {
 protected:
  // Returns "", or the message of the Error that `function` throws with this code.
  static std::string attempt(ErrorCode code, const std::function<void()>& function) {
    try {
      function();
      return "";
    } catch (const Error& error) {
      return error.code() == code ? error.what() : std::string("wrong code: ") + error.what();
    }
  }

  int reported_by_compiling(const char* operation, RouteRequest::Route route) {
    loaded();
    ProgramReference program;
    SampleCall call;
    const auto act = [&] {
      return attempt(ErrorCode::kCompile, [&] {
        CompileRequest request = test::request_of(SampleCall::kCode);
        request.route.route = route;
        program = loaded().compile(std::move(request)).program;
      });
    };
    return sweep(operation, {.act = act,
                             .check = [&] { return call.run(program->spec(), 0); },
                             .after = [&] { program.reset(); }})
        .reported;
  }
};

// Compile, five calls of GetExecutable, and three functions for the outputs. Failing statistics are
// left out instead. Each of these calls may also return null, the last three in two ways.
TEST_P(FailuresCompileTest, Compile) {
  EXPECT_EQ(reported_by_compiling("compile", RouteRequest::Route::kPjrt),
            GetParam().troubled ? 9 : 9 + 2 * 9);
}

// The direct route first asks for the serialized program.
TEST_P(FailuresCompileTest, CompileForTheDirectRoute) {
  EXPECT_EQ(reported_by_compiling("compile_direct", RouteRequest::Route::kAuto),
            GetParam().troubled ? 9 : 9 + 2 * 9);
}

// DeserializeAndLoad, GetExecutable for the outputs, and the three functions for them.
TEST_P(FailuresCompileTest, LoadCompiled) {
  CompileRequest request = test::request_of(SampleCall::kCode);
  request.keeps_serialized = true;
  request.code = loaded().compile(request).serialized;
  ProgramReference program;
  SampleCall call;
  const auto act = [&] {
    return attempt(ErrorCode::kCompile, [&] { program = loaded().load_compiled(request).program; });
  };
  const Tally tally = sweep("load_compiled", {.act = act,
                                              .check = [&] { return call.run(program->spec(), 0); },
                                              .after = [&] { program.reset(); }});
  EXPECT_EQ(tally.reported, GetParam().troubled ? 5 : 5 + 2 * 5);
}

// A statistic is left out when the plugin reports it but never gives its value.
TEST_P(FailuresCompileTest, StatisticsThatAreNeverGiven) {
  loaded();
  for (const char* function :
       {"PJRT_Executable_OptimizedProgram", "PJRT_Executable_GetCostAnalysis",
        "PJRT_Executable_GetCompiledMemoryStats", "PJRT_Executable_Serialize"}) {
    fake.hollow(function, 0, true);
  }
  const auto [program, statistics, _] = loaded().compile(test::request_of(SampleCall::kCode));
  EXPECT_FALSE(statistics.instructions);
  EXPECT_FALSE(statistics.flops);
  EXPECT_FALSE(statistics.memory.code_bytes);
  SampleCall call;
  EXPECT_EQ(call.run(program->spec(), 1), "");
}

TEST_P(FailuresCompileTest, DirectRefusal) {
  fake.set(FAKE_PLUGIN_PLATFORM, 1);
  loaded();
  EXPECT_EQ(sweep("direct_refusal", {.act =
                                         [&] {
                                           return attempt(ErrorCode::kCompile, [&] {
                                             EXPECT_NE(loaded().direct_refusal(true), "");
                                           });
                                         }})
                .reported,
            0);
}

TEST_P(FailuresCompileTest, Serialize) {
  const ProgramReference program = compile(SampleCall::kCode);
  int empty = 0;
  const Tally tally = sweep("serialize", {.act = [&] {
                              return attempt(ErrorCode::kCompile, [&] {
                                const std::string serialized = loaded().serialize(*program);
                                empty += serialized.empty() ? 1 : 0;
                                EXPECT_EQ(serialized.empty() && fake.failures() == 0, false);
                              });
                            }});
  EXPECT_EQ(tally.reported, GetParam().troubled ? 1 : 3);  // PJRT_LoadedExecutable_GetExecutable
  EXPECT_EQ(empty, GetParam().troubled ? 1 : 3);           // PJRT_Executable_Serialize
}

// The first target also asks for the plugin's version; the next ones do not. Each attempt uses a
// new name, because targets cannot be unregistered, and a name that the plugin has is not
// registered again.
TEST_P(FailuresCompileTest, RegisterFfiHandler) {
  loaded();
  int num_targets = 0;
  const auto act = [&] {
    return attempt(ErrorCode::kPlugin, [&] {
      loaded().register_ffi_handler("target" + std::to_string(++num_targets), "Host",
                                    test::handler_address<0, 2>());
    });
  };
  const test::Fault first{"PJRT_FFI_Register_Handler", test::Fault::Kind::kCall, 1};
  first.plan(fake, GetParam());
  const std::string message = act();
  EXPECT_EQ(message.find("cannot register the custom-call target target1: "), 0U) << message;
  EXPECT_EQ(first.complaint(message, GetParam()), "");
  behave();
  EXPECT_EQ(sweep("register_ffi_handler", {.act = act}).reported, 1);
}

INSTANTIATE_TEST_SUITE_P(Plugins, FailuresCompileTest, ::testing::ValuesIn(test::kPluginKinds),
                         test::kind_name);

}  // namespace
}  // namespace cyxla::runtime
