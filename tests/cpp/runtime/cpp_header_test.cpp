// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <cyxla/cyxla.hpp>

#include <array>
#include <complex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/function_table.h"
#include "support/runtime_test.h"

// The header knows the element types by number; these are the numbers.
static_assert(cyxla::ElementType<bool>::value == PJRT_Buffer_Type_PRED);
static_assert(cyxla::ElementType<std::int8_t>::value == PJRT_Buffer_Type_S8);
static_assert(cyxla::ElementType<std::int16_t>::value == PJRT_Buffer_Type_S16);
static_assert(cyxla::ElementType<std::int32_t>::value == PJRT_Buffer_Type_S32);
static_assert(cyxla::ElementType<std::int64_t>::value == PJRT_Buffer_Type_S64);
static_assert(cyxla::ElementType<std::uint8_t>::value == PJRT_Buffer_Type_U8);
static_assert(cyxla::ElementType<std::uint16_t>::value == PJRT_Buffer_Type_U16);
static_assert(cyxla::ElementType<std::uint32_t>::value == PJRT_Buffer_Type_U32);
static_assert(cyxla::ElementType<std::uint64_t>::value == PJRT_Buffer_Type_U64);
static_assert(cyxla::ElementType<float>::value == PJRT_Buffer_Type_F32);
static_assert(cyxla::ElementType<double>::value == PJRT_Buffer_Type_F64);
static_assert(cyxla::ElementType<std::complex<float>>::value == PJRT_Buffer_Type_C64);
static_assert(cyxla::ElementType<std::complex<double>>::value == PJRT_Buffer_Type_C128);

namespace {

const cyxla_program_spec* no_program_spec(void* /*executable*/) { return nullptr; }

class CppHeaderTest : public cyxla::test::RuntimeTest {
 protected:
  const cyxla_api table = cyxla::runtime::make_function_table(no_program_spec);
  const std::vector<double> values = {1, 2, 3};
  double sum = 0;
  const std::array<cyxla_input, 1> inputs = {cyxla::input(std::span(values))};
  const std::array<void*, 1> outputs = {&sum};
};

constexpr const char* kSum = "input F64[3]\noutput F64[] sum 0\n";

TEST_F(CppHeaderTest, InputsHaveTypeAndNumberOfElements) {
  EXPECT_EQ(inputs[0].data, values.data());
  EXPECT_EQ(inputs[0].element_type, PJRT_Buffer_Type_F64);
  EXPECT_EQ(inputs[0].num_elements, 3U);
  const std::int16_t scalar = 4;
  const cyxla_input one = cyxla::input(scalar);
  EXPECT_EQ(one.data, &scalar);
  EXPECT_EQ(one.element_type, PJRT_Buffer_Type_S16);
  EXPECT_EQ(one.num_elements, 1U);
  std::array<float, 2> changeable = {1, 2};
  const cyxla_input two = cyxla::input(std::span(changeable));
  EXPECT_EQ(two.element_type, PJRT_Buffer_Type_F32);
  EXPECT_EQ(two.num_elements, 2U);
}

TEST_F(CppHeaderTest, ProgramsExecuteAndKeepTheirSpec) {
  auto reference = compile(kSum);
  {
    cyxla::Program program(table, reference->spec());
    reference.reset();
    program.execute(inputs, outputs);
    EXPECT_EQ(sum, 6);
    cyxla::Program copy = program;
    const cyxla::Program other = std::move(program);
    copy = other;
    sum = 0;
    copy.execute(inputs, outputs, false);
    EXPECT_EQ(sum, 6);
    EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 1);
  }
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 0);
}

TEST_F(CppHeaderTest, CallsMayMove) {
  const auto reference = compile(kSum);
  const cyxla::Program program(table, reference->spec());
  const std::int64_t live = fake.live();
  {
    cyxla::Call first = program.prepare(inputs, outputs);
    first();
    EXPECT_EQ(sum, 6);
    cyxla::Call second = std::move(first);
    sum = 0;
    second();
    EXPECT_EQ(sum, 6);
    cyxla::Call third = program.prepare(inputs, outputs);
    third = std::move(second);
    third();
    EXPECT_THROW(first(), cyxla::ExecutionError);  // NOLINT(bugprone-use-after-move): it has none
  }
  EXPECT_EQ(fake.live(), live) << fake.live_by_kind();
}

TEST_F(CppHeaderTest, WrongCountsAreErrors) {
  const auto reference = compile(kSum);
  const cyxla::Program program(table, reference->spec());
  const std::string expected = "the program takes 1 input and gives 1 output, not ";
  try {
    program.execute({}, outputs);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(error.what(), expected + "0 and 1");
  }
  try {
    static_cast<void>(program.prepare(inputs, {}));
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(error.what(), expected + "1 and 0");
  }
}

TEST_F(CppHeaderTest, FailuresAreExceptionsWithTheirMessage) {
  const auto reference = compile(kSum);
  const cyxla::Program program(table, reference->spec());
  const std::array<cyxla_input, 1> wrong = {cyxla::input(sum)};
  try {
    program.execute(wrong, outputs);
    FAIL();
  } catch (const cyxla::ExecutionError& error) {
    EXPECT_STREQ(error.what(), "input 0 of the program f must have 3 elements, not 1");
  }
  EXPECT_THROW(program.prepare(wrong, outputs), cyxla::ExecutionError);
  const cyxla::Call call = program.prepare(inputs, outputs);
  fake.fail("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_INTERNAL, "burnt");
  try {
    call();
    FAIL();
  } catch (const cyxla::ExecutionError& error) {
    EXPECT_STREQ(error.what(),
                 "executing the program f failed: "
                 "PJRT_LoadedExecutable_Execute: INTERNAL: burnt");
  }
}

}  // namespace
