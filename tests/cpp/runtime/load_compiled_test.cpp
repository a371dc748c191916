// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::message_of;
using test::ProgramReference;
using test::signature_of;

constexpr const char* kDouble = "input F32[3]\noutput F32[3] scale 0 2\n";

class LoadCompiledTest : public test::RuntimeTest {
 protected:
  std::string compiled() {
    CompileRequest request = test::request_of(kDouble);
    request.keeps_serialized = true;
    return loaded().compile(std::move(request)).serialized;
  }
  ProgramReference load(const std::string& serialized, RouteRequest route = {}) {
    CompileRequest request = test::request_of(serialized, signature_of(kDouble));
    request.route = std::move(route);
    return loaded().load_compiled(std::move(request)).program;
  }
};

TEST_F(LoadCompiledTest, AProgramRunsWithoutBeingCompiledAgain) {
  const std::string serialized = compiled();
  EXPECT_NE(serialized, "");
  EXPECT_EQ(fake.calls("PJRT_Executable_Serialize"), 1U) << "the first bytes are the whole ones";
  const ProgramReference program = load(serialized);
  EXPECT_EQ(fake.calls("PJRT_Client_Compile"), 1U);
  EXPECT_EQ(fake.calls("PJRT_Executable_Serialize"), 1U);
  const Array<float> input({1, 2, 3});
  const Array<float> output({0, 0, 0});
  const cyxla_input inputs[] = {input.input(PJRT_Buffer_Type_F32)};
  void* const outputs[] = {output.data()};
  ASSERT_EQ(execute(&program->spec(), inputs, outputs, 0), 0) << test::last_message();
  EXPECT_EQ(output.values(), (std::vector<float>{2, 4, 6}));
}

TEST_F(LoadCompiledTest, TheRouteIsChosenAsForACompiledOne) {
  const std::string serialized = compiled();
  const ProgramReference asked = load(serialized, {RouteRequest::Route::kPjrt, "so it was asked"});
  EXPECT_EQ(asked->route_reason(), "so it was asked");
  const ProgramReference found = load(serialized, {RouteRequest::Route::kAuto, "", true});
  EXPECT_NE(found->route_reason().find("only programs for the CPU"), std::string::npos);
}

TEST_F(LoadCompiledTest, BytesThatThePluginRefuses) {
  EXPECT_EQ(
      message_of(ErrorCode::kCompile, [&] { return load("nonsense"); }),
      "PJRT_Executable_DeserializeAndLoad: INVALID_ARGUMENT: these bytes are not a serialized "
      "executable");
}

TEST_F(LoadCompiledTest, AnotherProgramThanDeclared) {
  const std::string serialized = compiled();
  const Signature other = signature_of("input F32[3]\noutput F32[4] fill 1\n");
  EXPECT_NE(message_of(ErrorCode::kCompile,
                       [&] { return loaded().load_compiled(test::request_of(serialized, other)); }),
            "");
}

TEST_F(LoadCompiledTest, APluginThatCannotLoad) {
  const std::string serialized = compiled();
  fake.remove_function("PJRT_Executable_DeserializeAndLoad");
  const std::string message = message_of(ErrorCode::kUnsupported, [&] { return load(serialized); });
  EXPECT_NE(message.find("PJRT_Executable_DeserializeAndLoad"), std::string::npos) << message;
}

TEST_F(LoadCompiledTest, APluginThatCannotSerializeGivesNothingToKeep) {
  loaded();
  fake.remove_function("PJRT_Executable_Serialize");
  EXPECT_EQ(compiled(), "");
}

TEST_F(LoadCompiledTest, NotAfterShutDown) {
  const std::string serialized = compiled();
  Runtime& runtime = loaded();
  Runtime::shut_down();
  EXPECT_EQ(message_of(ErrorCode::kShutdown,
                       [&] { return runtime.load_compiled(test::request_of(serialized, {})); }),
            "cannot load a compiled program: the runtime is shut down");
}

}  // namespace
}  // namespace cyxla::runtime
