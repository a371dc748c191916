// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::message_of;
using test::ProgramReference;
using Route = RouteRequest::Route;

// Requested routes on a plugin whose programs cannot be called directly: it does not know
// StableHLO, and its serialized programs lack kernels.
class RouteTest : public test::RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    fake.set(FAKE_PLUGIN_PLATFORM, 1);
  }
  ProgramReference compile_for(RouteRequest route) {
    constexpr const char* kCode = "output F32[] fill 1\n";
    CompileRequest request = test::request_of(kCode);
    request.route = std::move(route);
    return loaded().compile(std::move(request)).program;
  }
  static void expect_result(const ProgramReference& program) {
    float result = 0;
    void* const outputs[] = {&result};
    EXPECT_EQ(execute(&program->spec(), nullptr, outputs, 1), 0) << test::last_message();
    EXPECT_EQ(result, 1);
  }
};

TEST_F(RouteTest, ThroughPjrtForTheReasonGiven) {
  const ProgramReference program = compile_for({.route = Route::kPjrt, .reason = "asked for"});
  EXPECT_EQ(program->spec().route, CYXLA_ROUTE_PJRT);
  EXPECT_EQ(program->route_reason(), "asked for");
  EXPECT_EQ(fake.calls("PJRT_Client_Compile"), 1U);  // nothing was tried
  expect_result(program);
}

TEST_F(RouteTest, ARefusalCostsTheReasonAlone) {
  for (int i = 0; i < 2; ++i) {
    const ProgramReference program = compile_for({.route = Route::kAuto});
    EXPECT_EQ(program->spec().route, CYXLA_ROUTE_PJRT);
    EXPECT_NE(program->route_reason().find("the plugin cannot compile cyxla's trial program"),
              std::string::npos)
        << program->route_reason();
    expect_result(program);
  }
  EXPECT_EQ(fake.calls("PJRT_Client_Compile"), 3U);  // the plugin is tried once
}

TEST_F(RouteTest, DirectlyOrNotAtAll) {
  const std::string message =
      message_of(ErrorCode::kUnsupported, [&] { compile_for({.route = Route::kDirect}); });
  EXPECT_EQ(message.find("the program f cannot be called directly: the plugin cannot"), 0U)
      << message;
  EXPECT_NE(message.find("; leave route to 'auto' to run it through PJRT"), std::string::npos);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 0);
}

TEST_F(RouteTest, ADeviceThatIsNotTheHostIsNotTried) {
  fake.set(FAKE_PLUGIN_NOT_ON_CPU, 1);
  const ProgramReference program = compile_for({.route = Route::kAuto});
  EXPECT_EQ(program->route_reason(), "the plugin's buffers are not in the host's memory");
  EXPECT_EQ(fake.calls("PJRT_Client_Compile"), 1U);
  expect_result(program);
}

TEST_F(RouteTest, AnotherPlatformIsNotTried) {
  fake.set(FAKE_PLUGIN_PLATFORM, 0);
  const ProgramReference program = compile_for({.route = Route::kAuto});
  EXPECT_EQ(program->route_reason(),
            "the plugin computes on fake, and only programs for the CPU can be called directly");
  EXPECT_EQ(fake.calls("PJRT_Client_Compile"), 1U);
  expect_result(program);
}

TEST_F(RouteTest, TheRefusalIsKnownWithoutAProgram) {
  EXPECT_NE(loaded().direct_refusal(true), "");
}

TEST_F(RouteTest, SerializesAProgram) {
  const ProgramReference program = compile_for({});
  EXPECT_FALSE(loaded().serialize(*program).empty());
  Runtime::shut_down();
  EXPECT_EQ(message_of(ErrorCode::kShutdown, [&] { loaded().serialize(*program); }),
            "cannot serialize a program: the runtime is shut down");
  EXPECT_EQ(message_of(ErrorCode::kShutdown, [&] { return loaded().direct_refusal(true); }),
            "cannot try the direct route: the runtime is shut down");
}

}  // namespace
}  // namespace cyxla::runtime
