// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::last_message;
using test::ProgramReference;

// Two outputs; the second takes a destination, a donated argument after the only input.
constexpr const char* kCode =
    "# tf.aliasing_output\n"
    "input F32[4]\n"
    "input F32[4]\n"
    "output F32[4] scale 0 2\n"
    "output F32[4] scale 0 3 into 1\n";

class InPlaceTest : public test::RuntimeTest {
 protected:
  ProgramReference compile_in_place() {
    Signature signature = test::signature_of(kCode);
    signature.inputs.pop_back();
    signature.in_place_outputs = {1};
    return loaded().compile(test::request_of(kCode, signature)).program;
  }

  const Array<float> input_{{1, 2, 3, 4}};
  const Array<float> doubled_{std::vector<float>(4, -1)};
  const std::vector<float> twice_{2, 4, 6, 8};
  const std::vector<float> thrice_{3, 6, 9, 12};
  const std::vector<cyxla_input> inputs_{input_.input(PJRT_Buffer_Type_F32)};
};

TEST_F(InPlaceTest, DestinationsAreInvisibleToCallers) {
  const ProgramReference program = compile_in_place();
  EXPECT_EQ(program->spec().num_inputs, 1U);
  EXPECT_EQ(program->spec().num_outputs, 2U);
}

TEST_F(InPlaceTest, AnAlignedDestinationIsWrittenByThePlugin) {
  const ProgramReference program = compile_in_place();
  for (int i = 0; i < 3; ++i) {
    const Array<float> tripled(std::vector<float>(4, -1));
    void* const outputs[] = {doubled_.data(), tripled.data()};
    ASSERT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), 0) << last_message();
    EXPECT_EQ(doubled_.values(), twice_);
    EXPECT_EQ(tripled.values(), thrice_);
  }
  // The plugin wrote to the caller's memory before the outputs are read.
  Array<float> tripled(std::vector<float>(4, -1));
  void* const outputs[] = {doubled_.data(), tripled.data()};
  fake.fail("PJRT_Buffer_UnsafePointer", 1, PJRT_Error_Code_INTERNAL, "stop");
  EXPECT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), -1);
  EXPECT_EQ(tripled.values(), thrice_);
}

TEST_F(InPlaceTest, AMisalignedDestinationIsCopiedTo) {
  const ProgramReference program = compile_in_place();
  for (const std::size_t offset : {4U, 32U, 60U}) {
    const Array<float> tripled(std::vector<float>(4, -1), offset);
    void* const outputs[] = {doubled_.data(), tripled.data()};
    ASSERT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), 0) << last_message();
    EXPECT_EQ(tripled.values(), thrice_);
  }
}

TEST_F(InPlaceTest, AnOutputMayBeDropped) {
  const ProgramReference program = compile_in_place();
  void* const outputs[] = {doubled_.data(), nullptr};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), 0) << last_message();
  }
  EXPECT_EQ(doubled_.values(), twice_);
}

// Without zero_copy, the inputs are copied before anything is written.
TEST_F(InPlaceTest, WithoutZeroCopyAnOutputMayOverlapAnInput) {
  const ProgramReference program = compile_in_place();
  void* const outputs[] = {doubled_.data(), input_.data()};
  ASSERT_EQ(execute(&program->spec(), inputs_.data(), outputs, 0), 0) << last_message();
  EXPECT_EQ(doubled_.values(), twice_);
  EXPECT_EQ(input_.values(), thrice_);
}

// A plugin may write an output's element before it reads the next element of an input.
TEST_F(InPlaceTest, AnOutputOverAnInputIsNotWrittenInPlace) {
  const ProgramReference program = compile_in_place();
  const Array<float> both(std::vector<float>(20, 1));  // 16 elements are 64 bytes
  const cyxla_input inputs[] = {{both.data(), PJRT_Buffer_Type_F32, 4}};
  for (const int zero_copy : {0, 1, 1}) {
    void* const outputs[] = {nullptr, both.data()};
    fake.fail("PJRT_Buffer_UnsafePointer", 1, PJRT_Error_Code_INTERNAL, "stop");
    EXPECT_EQ(execute(&program->spec(), inputs, outputs, zero_copy), -1);
    EXPECT_EQ(both.values()[0], 1);  // the outputs were not written there when they were read
  }
  void* const beside[] = {nullptr, static_cast<char*>(both.data()) + 64};
  fake.fail("PJRT_Buffer_UnsafePointer", 1, PJRT_Error_Code_INTERNAL, "stop");
  EXPECT_EQ(execute(&program->spec(), inputs, beside, 1), -1);
  EXPECT_EQ(both.values()[16], 3);
}

TEST_F(InPlaceTest, PreparedCallsWriteInPlace) {
  const ProgramReference program = compile_in_place();
  const Array<float> tripled(std::vector<float>(4, -1));
  void* const outputs[] = {doubled_.data(), tripled.data()};
  cyxla_call* prepared = prepare(&program->spec(), inputs_.data(), outputs, 1);
  ASSERT_NE(prepared, nullptr);
  EXPECT_EQ(call(prepared), 0) << last_message();
  EXPECT_EQ(tripled.values(), thrice_);
  discard(prepared);
}

TEST_F(InPlaceTest, InputsStayTheCallers) {
  const ProgramReference program = compile_in_place();
  fake.set(FAKE_PLUGIN_RECORD_EXECUTIONS, 1);
  const Array<float> tripled(std::vector<float>(4, -1));
  void* const outputs[] = {doubled_.data(), tripled.data()};
  ASSERT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), 0) << last_message();
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_NON_DONATABLE), "0");
}

TEST_F(InPlaceTest, APluginWithoutSharedMemoryCopies) {
  fake.set(FAKE_PLUGIN_NOT_ON_CPU, 1);
  const ProgramReference program = compile_in_place();
  const Array<float> tripled(std::vector<float>(4, -1));
  void* const outputs[] = {doubled_.data(), tripled.data()};
  ASSERT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), 0) << last_message();
  EXPECT_EQ(tripled.values(), thrice_);
}

// Each failure is an error and leaves nothing behind, and the next call works.
TEST_F(InPlaceTest, FailuresLeaveNothingBehind) {
  const ProgramReference program = compile_in_place();
  const Array<float> tripled(std::vector<float>(4, -1));
  void* const outputs[] = {doubled_.data(), tripled.data()};
  for (int i = 0; i < 2; ++i) {  // the second call makes the view of the input
    ASSERT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), 0) << last_message();
  }
  const std::int64_t live = fake.live();
  for (const char* function : {"PJRT_Client_BufferFromHostBuffer", "PJRT_LoadedExecutable_Execute",
                               "PJRT_Event_Await", "PJRT_Buffer_UnsafePointer"}) {
    fake.fail(function, 1, PJRT_Error_Code_INTERNAL, "burnt");
    EXPECT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), -1) << function;
    EXPECT_NE(last_message().find("burnt"), std::string::npos) << last_message();
    EXPECT_EQ(fake.live(), live) << function << ": " << fake.live_by_kind();
    ASSERT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), 0) << last_message();
    EXPECT_EQ(tripled.values(), thrice_);
  }
  fake.fail("PJRT_Client_BufferFromHostBuffer", 1, PJRT_Error_Code_INTERNAL, "burnt");
  EXPECT_EQ(execute(&program->spec(), inputs_.data(), outputs, 1), -1);
  EXPECT_EQ(last_message(),
            "passing the destination of output 1 of the program f failed: "
            "PJRT_Client_BufferFromHostBuffer: INTERNAL: burnt");
}

}  // namespace
}  // namespace cyxla::runtime
