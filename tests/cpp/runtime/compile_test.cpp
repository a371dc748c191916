// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::message_of;
using test::ProgramReference;
using test::signature_of;

constexpr const char* kProgram =
    "input F32[3]\n"
    "input F64[2,2]\n"
    "input PRED[]\n"
    "input S8[0,5]\n"
    "output F32[3] copy 0\n"
    "output C128[2] fill 1\n";

class CompileTest : public test::RuntimeTest {
 protected:
  // Returns the error message for a program that has `actual` but declares `declared`.
  std::string mismatch(const std::string& actual, const std::string& declared) {
    return message_of(ErrorCode::kCompile, [&] {
      return loaded().compile(test::request_of(actual, signature_of(declared, "model")));
    });
  }
};

TEST_F(CompileTest, TheSpecDescribesTheProgram) {
  const ProgramReference program = compile(kProgram);
  const cyxla_program_spec& spec = program->spec();
  EXPECT_EQ(spec.struct_size, sizeof(cyxla_program_spec));
  EXPECT_EQ(spec.flags, 0U);
  EXPECT_EQ(spec.route, 0);
  ASSERT_EQ(spec.num_inputs, 4U);
  ASSERT_EQ(spec.num_outputs, 2U);
  const std::int32_t types[] = {PJRT_Buffer_Type_F32, PJRT_Buffer_Type_F64, PJRT_Buffer_Type_PRED,
                                PJRT_Buffer_Type_S8};
  const std::size_t elements[] = {3, 4, 1, 0};
  const std::size_t bytes[] = {12, 32, 1, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(spec.input_types[i], types[i]) << i;
    EXPECT_EQ(spec.input_elements[i], elements[i]) << i;
    EXPECT_EQ(spec.input_bytes[i], bytes[i]) << i;
  }
  EXPECT_EQ(spec.output_types[0], PJRT_Buffer_Type_F32);
  EXPECT_EQ(spec.output_types[1], PJRT_Buffer_Type_C128);
  EXPECT_EQ(spec.output_bytes[0], 12U);
  EXPECT_EQ(spec.output_bytes[1], 32U);
  EXPECT_EQ(&Program::of(spec), program.get());
  EXPECT_EQ(program->signature().name, "f");
}

TEST_F(CompileTest, AProgramThatNeedsPythonIsMarked) {
  Signature signature = signature_of("output F32[] fill 1");
  signature.needs_python = true;
  const ProgramReference program =
      loaded().compile(test::request_of("output F32[] fill 1", signature)).program;
  EXPECT_EQ(program->spec().flags, CYXLA_NEEDS_PYTHON);
}

TEST_F(CompileTest, StatisticsAreThePlugins) {
  fake.set(FAKE_PLUGIN_CODE_BYTES, 99);
  const auto [program, statistics, _] = loaded().compile(test::request_of(kProgram));
  EXPECT_GT(statistics.seconds, 0.0);
  EXPECT_LT(statistics.seconds, 60.0);
  EXPECT_EQ(statistics.memory.code_bytes, 99);
  EXPECT_EQ(statistics.memory.argument_bytes, 12 + 32 + 1);
  EXPECT_EQ(statistics.memory.output_bytes, 12 + 32);
  EXPECT_EQ(statistics.flops, 42.0);
}

TEST_F(CompileTest, OverridesReachThePlugin) {
  const pjrt::OptionOverrides overrides = {{"xla_fast", true}};
  CompileRequest request = test::request_of(kProgram);
  request.overrides = overrides;
  static_cast<void>(loaded().compile(std::move(request)));
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_COMPILE_OPTIONS), pjrt::serialize_compile_options(overrides));
}

TEST_F(CompileTest, OutputsOtherThanDeclaredAreRefused) {
  EXPECT_EQ(mismatch("output F32[2] iota", "output F32[2] iota\noutput F32[] fill 1"),
            "the compiled program model has 1 output, but its signature declares 2; lower the "
            "function again");
  EXPECT_EQ(
      mismatch("output F32[] fill 1\noutput F32[2] iota",
               "output F32[] fill 1\noutput F64[2] iota"),
      "output 1 of the compiled program model is F32[2], but its signature declares F64[2]; lower "
      "the function again");
  EXPECT_EQ(mismatch("output F32[2,3] iota", "output F32[3,2] iota"),
            "output 0 of the compiled program model is F32[2,3], but its signature declares "
            "F32[3,2]; lower "
            "the function again");
  EXPECT_EQ(
      mismatch("output F32[1] iota", "output F32[] iota"),
      "output 0 of the compiled program model is F32[1], but its signature declares F32[]; lower "
      "the function again");
  EXPECT_EQ(fake.live(), 1) << fake.live_by_kind();  // the client
}

TEST_F(CompileTest, InputsOtherThanDeclaredAreRefused) {
  const std::string output = "\noutput F32[] fill 1";
  EXPECT_EQ(
      mismatch("input F32[2]" + output, output),
      "the compiled program model has 1 input, but its signature declares 0; lower the function "
      "again");
  EXPECT_EQ(
      mismatch("input S8[]\ninput F32[2]" + output, "input S8[]\ninput S32[2]" + output),
      "input 1 of the compiled program model is F32[2], but its signature declares S32[2]; lower "
      "the function again");
  EXPECT_EQ(
      mismatch("input F32[2,3]" + output, "input F32[3,2]" + output),
      "input 0 of the compiled program model is F32[2,3], but its signature declares F32[3,2]; "
      "lower the function again");
  EXPECT_EQ(fake.live(), 1) << fake.live_by_kind();  // the client
}

TEST_F(CompileTest, InputsThatNativeCodeCannotPassAreRefused) {
  fake.set(FAKE_PLUGIN_OPTIMIZED, 3);  // a plugin that does not report its inputs
  EXPECT_EQ(mismatch("output F32[] fill 1", "input S4[2]\noutput F32[] fill 1"),
            "S4[2] has an element type that cyxla cannot pass to native code (PJRT type " +
                std::to_string(PJRT_Buffer_Type_S4) + ")");
  EXPECT_EQ(fake.live(), 1) << fake.live_by_kind();
}

TEST_F(CompileTest, AnUncompilableProgramIsThePluginsError) {
  EXPECT_EQ(mismatch("gibberish F32[2]", ""),
            "PJRT_Client_Compile: INVALID_ARGUMENT: unknown statement: gibberish F32[2]");
}

TEST_F(CompileTest, TheLastReferenceDestroysTheProgram) {
  ProgramReference program = compile(kProgram);
  const cyxla_program_spec* spec = &program->spec();
  retain(spec);
  program.reset();
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 1);
  release(spec);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 0);
}

// Callers must not release the Executable's reference.
TEST_F(CompileTest, AReleaseTooManyIsRecordedAndIgnored) {
  constexpr const char* kMessage =
      "the spec of the program f was released more often than retained, which is ignored; call "
      "release() once for each retain() of yours, and not for the spec that program_spec() gives";
  const ProgramReference program = compile(kProgram);
  const cyxla_program_spec* spec = &program->spec();
  const std::uint64_t before = error_info().count;
  release(spec);
  EXPECT_EQ(test::last_message(), kMessage);
  EXPECT_EQ(last_error_code(), ErrorCode::kArgument);
  retain(spec);
  release(spec);
  EXPECT_EQ(error_info().count, before + 1);
  release(spec);
  EXPECT_EQ(error_info().count, before + 2);
  EXPECT_EQ(error_info().message, kMessage);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 1);
}

TEST_F(CompileTest, ManyProgramsMayLiveAtOnce) {
  std::vector<ProgramReference> programs;
  for (int i = 0; i < 50; ++i) {
    programs.push_back(compile("output S32[] fill " + std::to_string(i)));
  }
  for (std::size_t i = 0; i < programs.size(); i += 2) {
    programs[i].reset();
  }
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 25);
  for (std::size_t i = 1; i < programs.size(); i += 2) {
    std::int32_t result = -1;
    void* const outputs[] = {&result};
    ASSERT_EQ(execute(&programs[i]->spec(), nullptr, outputs, 0), 0) << test::last_message();
    EXPECT_EQ(result, static_cast<std::int32_t>(i));
  }
}

// A reference may be released after the runtime was shut down; the spec stays readable until then.
TEST_F(CompileTest, ReferencesMayOutliveTheRuntime) {
  const ProgramReference program = compile(kProgram);
  Runtime::shut_down();
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
  EXPECT_EQ(program->spec().num_inputs, 4U);
  EXPECT_EQ(program->spec().input_bytes[1], 32U);
}

}  // namespace
}  // namespace cyxla::runtime
