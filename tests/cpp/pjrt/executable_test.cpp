// SPDX-License-Identifier: Apache-2.0
#include "pjrt/executable.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using std::string_literals::operator""s;
using test::message_of;

constexpr const char* kProgram =
    "input F32[3]\n"
    "input F64[2,2]\n"
    "output F32[3] copy 0\n"
    "output F64[] sum 1\n"
    "output F64[4,1,1] copy 1\n";

class ExecutableTest : public test::PjrtTest {};

TEST_F(ExecutableTest, OwnsItsProgram) {
  {
    LoadedExecutable executable = compile(kProgram);
    EXPECT_TRUE(executable);
    const LoadedExecutable moved = std::move(executable);
    EXPECT_FALSE(executable);  // NOLINT(bugprone-use-after-move): a moved-from one is empty
    EXPECT_TRUE(moved);
  }
  EXPECT_EQ(fake.calls("PJRT_LoadedExecutable_Destroy"), 1U);
  const LoadedExecutable empty;
  EXPECT_FALSE(empty);
}

TEST_F(ExecutableTest, TellsItsOutputs) {
  const std::vector<ValueType> outputs = compile(kProgram).output_types();
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_EQ(outputs[0].element_type, PJRT_Buffer_Type_F32);
  EXPECT_EQ(outputs[0].dimensions, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(outputs[1].element_type, PJRT_Buffer_Type_F64);
  EXPECT_EQ(outputs[1].dimensions, std::vector<std::int64_t>{});
  EXPECT_EQ(outputs[2].dimensions, (std::vector<std::int64_t>{4, 1, 1}));
  EXPECT_EQ(fake.live(FAKE_PLUGIN_EXECUTABLE), 0);
}

TEST_F(ExecutableTest, AProgramWithoutOutputsIsNotAskedForTheirTypes) {
  // The fake plugin, like some real ones, fails these functions for programs without outputs.
  EXPECT_TRUE(compile("input F32[3]").output_types().empty());
  EXPECT_EQ(fake.calls("PJRT_Executable_OutputElementTypes"), 0U);
}

TEST_F(ExecutableTest, AContradictionIsAnError) {
  const LoadedExecutable executable = compile(kProgram);
  const char* const counts[] = {"2 element types and 3 shapes", "3 element types and 2 shapes"};
  for (const int contradiction : {1, 2}) {
    fake.set(FAKE_PLUGIN_CONTRADICTION, contradiction);
    EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { executable.output_types(); }),
              std::string("PJRT_Executable_OutputElementTypes: the plugin reports 3 outputs but ") +
                  counts[contradiction - 1] + "; use another plugin");
  }
}

TEST_F(ExecutableTest, AFailingQuestionIsAnError) {
  const LoadedExecutable executable = compile(kProgram);
  for (const char* function :
       {"PJRT_LoadedExecutable_GetExecutable", "PJRT_Executable_NumOutputs",
        "PJRT_Executable_OutputElementTypes", "PJRT_Executable_OutputDimensions"}) {
    fake.fail(function, 1, PJRT_Error_Code_UNIMPLEMENTED, "cannot tell");
    EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { executable.output_types(); }),
              function + ": UNIMPLEMENTED: cannot tell"s);
    EXPECT_EQ(fake.live(FAKE_PLUGIN_EXECUTABLE), 0) << function;
  }
}

TEST_F(ExecutableTest, TellsItsSizes) {
  fake.set(FAKE_PLUGIN_CODE_BYTES, 1000);
  const MemoryStatistics statistics = compile(kProgram).memory_statistics();
  EXPECT_EQ(statistics.code_bytes, 1000);
  EXPECT_EQ(statistics.argument_bytes, 12 + 32);
  EXPECT_EQ(statistics.output_bytes, 12 + 8 + 32);
  EXPECT_EQ(statistics.temporary_bytes, 17);
  EXPECT_EQ(fake.calls("PJRT_Executable_Serialize"), 0U);
}

TEST_F(ExecutableTest, AnUnknownCodeSizeIsThatOfTheObjectFiles) {
  const LoadedExecutable executable = compile(kProgram);
  EXPECT_EQ(executable.memory_statistics().code_bytes, 128);
  fake.set(FAKE_PLUGIN_SERIALIZED, 1);
  EXPECT_EQ(executable.memory_statistics().code_bytes, std::nullopt);
  fake.set(FAKE_PLUGIN_SERIALIZED, 2);
  EXPECT_EQ(executable.memory_statistics().code_bytes, std::nullopt);
  EXPECT_EQ(executable.memory_statistics().argument_bytes, 44);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_SERIALIZED_EXECUTABLE), 0);
}

TEST_F(ExecutableTest, SizesThatThePluginCannotTellAreUnknown) {
  const LoadedExecutable executable = compile(kProgram);
  fake.fail("PJRT_Executable_GetCompiledMemoryStats", 1, PJRT_Error_Code_UNIMPLEMENTED, "no");
  fake.fail("PJRT_Executable_Serialize", 1, PJRT_Error_Code_UNIMPLEMENTED, "no");
  MemoryStatistics statistics = executable.memory_statistics();
  EXPECT_EQ(statistics.code_bytes, std::nullopt);
  EXPECT_EQ(statistics.argument_bytes, std::nullopt);
  EXPECT_EQ(statistics.output_bytes, std::nullopt);
  EXPECT_EQ(statistics.temporary_bytes, std::nullopt);

  fake.remove_function("PJRT_Executable_GetCompiledMemoryStats");
  EXPECT_EQ(executable.memory_statistics().code_bytes, 128);
  fake.remove_function("PJRT_Executable_Serialize");
  EXPECT_EQ(executable.memory_statistics().code_bytes, std::nullopt);

  fake.fail("PJRT_LoadedExecutable_GetExecutable", 1, PJRT_Error_Code_INTERNAL, "broken");
  EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { executable.memory_statistics(); }),
            "PJRT_LoadedExecutable_GetExecutable: INTERNAL: broken");
}

TEST_F(ExecutableTest, CountsTheInstructionsOfAllComputations) {
  const LoadedExecutable executable = compile(kProgram);
  const auto num_instructions = [&] { return executable.optimized_program()->num_instructions(); };
  EXPECT_EQ(num_instructions(), 5);
  fake.set(FAKE_PLUGIN_OPTIMIZED, 1);
  EXPECT_EQ(num_instructions(), 5);
  for (const int unreadable : {2, 3, 4}) {
    fake.set(FAKE_PLUGIN_OPTIMIZED, unreadable);
    EXPECT_EQ(num_instructions(), std::nullopt) << unreadable;
  }
}

TEST_F(ExecutableTest, TellsItsInputs) {
  for (const bool with_configuration : {true, false}) {
    fake.set(FAKE_PLUGIN_OPTIMIZED, with_configuration ? 0 : 1);
    for (const std::string more : {"", "input C128[]\n"}) {  // dimensions are packed or not
      const auto inputs = compile(kProgram + more).optimized_program()->input_types();
      ASSERT_EQ(inputs->size(), more.empty() ? 2U : 3U);
      EXPECT_EQ((*inputs)[0].element_type, PJRT_Buffer_Type_F32);
      EXPECT_EQ((*inputs)[0].dimensions, (std::vector<std::int64_t>{3}));
      EXPECT_EQ((*inputs)[1].element_type, PJRT_Buffer_Type_F64);
      EXPECT_EQ((*inputs)[1].dimensions, (std::vector<std::int64_t>{2, 2}));
      if (!more.empty()) {
        EXPECT_EQ((*inputs)[2].element_type, PJRT_Buffer_Type_C128);
        EXPECT_TRUE((*inputs)[2].dimensions.empty());
      }
    }
  }
  for (const int unreadable : {2, 3, 4}) {
    fake.set(FAKE_PLUGIN_OPTIMIZED, unreadable);
    EXPECT_FALSE(compile(kProgram).optimized_program()->input_types()) << unreadable;
  }
}

TEST_F(ExecutableTest, APluginMayKeepItsOptimizedProgram) {
  const LoadedExecutable executable = compile(kProgram);
  for (const std::uint64_t nth : {1U, 2U}) {
    fake.fail("PJRT_Executable_OptimizedProgram", nth, PJRT_Error_Code_UNIMPLEMENTED, "no");
    EXPECT_FALSE(executable.optimized_program()) << nth;
    fake.reset();
  }
  fake.remove_function("PJRT_Executable_OptimizedProgram");
  EXPECT_FALSE(executable.optimized_program());
}

TEST_F(ExecutableTest, TellsItsFlops) {
  const LoadedExecutable executable = compile(kProgram);
  EXPECT_EQ(executable.flops(), 42.0);
  fake.set(FAKE_PLUGIN_FLOPS, 1);
  EXPECT_EQ(executable.flops(), std::nullopt);
  fake.set(FAKE_PLUGIN_FLOPS, 2);
  EXPECT_EQ(executable.flops(), std::nullopt);
  fake.set(FAKE_PLUGIN_FLOPS, 0);
  fake.fail("PJRT_Executable_GetCostAnalysis", 1, PJRT_Error_Code_UNIMPLEMENTED, "no");
  EXPECT_EQ(executable.flops(), std::nullopt);
  EXPECT_EQ(executable.flops(), 42.0);
  fake.remove_function("PJRT_Executable_GetCostAnalysis");
  EXPECT_EQ(executable.flops(), std::nullopt);
}

}  // namespace
}  // namespace cyxla::pjrt
