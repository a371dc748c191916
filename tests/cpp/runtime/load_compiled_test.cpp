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
    CompileStatistics statistics;
    std::string serialized;
    const ProgramReference program(loaded().compile(kDouble, "fake", {}, signature_of(kDouble),
                                                    statistics, {}, {}, &serialized));
    return serialized;
  }
};

TEST_F(LoadCompiledTest, AProgramRunsWithoutBeingCompiledAgain) {
  const std::string serialized = compiled();
  EXPECT_NE(serialized, "");
  EXPECT_EQ(fake.calls("PJRT_Executable_Serialize"), 1U) << "the first bytes are the whole ones";
  const ProgramReference program(loaded().load_compiled(serialized, signature_of(kDouble)));
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
  const ProgramReference asked(loaded().load_compiled(
      serialized, signature_of(kDouble), {RouteRequest::Route::kPjrt, "so it was asked"}));
  EXPECT_EQ(asked->route_reason(), "so it was asked");
  const ProgramReference found(loaded().load_compiled(serialized, signature_of(kDouble),
                                                      {RouteRequest::Route::kAuto, "", true}));
  EXPECT_NE(found->route_reason().find("only programs for the CPU"), std::string::npos);
}

TEST_F(LoadCompiledTest, BytesThatThePluginRefuses) {
  EXPECT_EQ(message_of(ErrorCode::kCompile,
                       [&] { return loaded().load_compiled("nonsense", signature_of(kDouble)); }),
            "PJRT_Executable_DeserializeAndLoad: INVALID_ARGUMENT: these bytes are no serialized "
            "executable");
}

TEST_F(LoadCompiledTest, AnotherProgramThanDeclared) {
  const std::string serialized = compiled();
  const Signature other = signature_of("input F32[3]\noutput F32[4] fill 1\n");
  EXPECT_NE(
      message_of(ErrorCode::kCompile, [&] { return loaded().load_compiled(serialized, other); }),
      "");
}

TEST_F(LoadCompiledTest, APluginThatCannotLoad) {
  const std::string serialized = compiled();
  fake.remove_function("PJRT_Executable_DeserializeAndLoad");
  const std::string message = message_of(ErrorCode::kUnsupported, [&] {
    return loaded().load_compiled(serialized, signature_of(kDouble));
  });
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
                       [&] { return runtime.load_compiled(serialized, signature_of(kDouble)); }),
            "cannot load a compiled program: the runtime is shut down");
}

}  // namespace
}  // namespace cyxla::runtime
