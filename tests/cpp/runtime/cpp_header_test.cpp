// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <cyxla/cyxla.hpp>

#include <array>
#include <complex>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/function_table.h"
#include "support/runtime_test.h"

// The header knows the element types by number; these are the numbers.
static_assert(sizeof(cyxla::Program) == 2 * sizeof(void*));
static_assert(std::is_nothrow_move_constructible_v<cyxla::Program> &&
              std::is_nothrow_move_assignable_v<cyxla::Program>);
static_assert(std::is_nothrow_move_constructible_v<cyxla::Call> &&
              !std::is_copy_constructible_v<cyxla::Call>);
static_assert(!std::is_invocable_v<const cyxla::Call&>, "one thread at a time");
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

TEST_F(CppHeaderTest, AMovedFromProgramIsEmpty) {
  auto reference = compile(kSum);
  cyxla::Program program(table, reference->spec());
  cyxla::Program other = std::move(program);
  reference.reset();
  // NOLINTBEGIN(bugprone-use-after-move): what it is then is tested
  try {
    program.execute(inputs, outputs);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "this cyxla::Program was moved from; use the one it was moved to");
  }
  {
    const cyxla::Program empty = program;
    EXPECT_THROW(empty.prepare(inputs, outputs), std::invalid_argument);
  }
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 1);
  program = std::move(other);
  program.execute(inputs, outputs);
  EXPECT_EQ(sum, 6);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 1);
}

TEST_F(CppHeaderTest, VectorsAndArraysAreInputsAndOutputs) {
  const std::vector<float> vector = {1, 2};
  std::array<std::complex<double>, 3> array = {};
  std::int8_t plain[4] = {};
  const cyxla_input from_vector = cyxla::input(vector);
  EXPECT_EQ(from_vector.data, vector.data());
  EXPECT_EQ(from_vector.element_type, PJRT_Buffer_Type_F32);
  EXPECT_EQ(from_vector.num_elements, 2U);
  EXPECT_EQ(cyxla::input(array).num_elements, 3U);
  EXPECT_EQ(cyxla::input(plain).num_elements, 4U);
  const cyxla::Output to_array = cyxla::output(array);
  EXPECT_EQ(to_array.data, array.data());
  EXPECT_EQ(to_array.element_type, PJRT_Buffer_Type_C128);
  EXPECT_EQ(to_array.num_elements, 3U);
  const cyxla::Output to_span = cyxla::output(std::span(plain));
  EXPECT_EQ(to_span.data, plain);
  EXPECT_EQ(to_span.element_type, PJRT_Buffer_Type_S8);
  EXPECT_EQ(cyxla::output(plain).num_elements, 4U);
  EXPECT_EQ(cyxla::output(sum).data, &sum);
  EXPECT_EQ(cyxla::output(sum).num_elements, 1U);
}

// What would be gone when the program runs, or cannot be written, does not compile.
template <typename Value>
concept IsInput = requires(Value&& value) {
  cyxla::input(std::forward<Value>(value));
};
template <typename Value>
concept IsOutput = requires(Value&& value) {
  cyxla::output(std::forward<Value>(value));
};
static_assert(IsInput<const std::vector<double>&> && IsInput<std::span<const double>> &&
              IsInput<const double&>);
static_assert(!IsInput<std::vector<double>> && !IsInput<std::array<double, 2>> &&
              !IsInput<double> && !IsInput<std::vector<bool>&> && !IsInput<char&>);
static_assert(IsOutput<std::vector<double>&> && IsOutput<std::span<double>> && IsOutput<double&>);
static_assert(!IsOutput<std::vector<double>> && !IsOutput<double>);
static_assert(!IsOutput<const std::vector<double>&> && !IsOutput<std::span<const double>> &&
              !IsOutput<const double&>);

TEST_F(CppHeaderTest, BraceListsWork) {
  const auto reference = compile(kSum);
  const cyxla::Program program(table, reference->spec());
  program.execute({cyxla::input(values)}, {cyxla::output(sum)});
  EXPECT_EQ(sum, 6);
  program.execute({cyxla::input(values)}, {nullptr});
  sum = 0;
  program.execute({cyxla::input(values)}, {&sum}, false);
  EXPECT_EQ(sum, 6);
  cyxla::Call call = program.prepare({cyxla::input(values)}, {cyxla::output(sum)});
  sum = 0;
  call();
  EXPECT_EQ(sum, 6);
  const auto nothing = compile("");
  cyxla::Program(table, nothing->spec()).execute({}, {});
}

TEST_F(CppHeaderTest, OutputsAreChecked) {
  const auto reference = compile("input F64[3]\noutput F64[] sum 0\noutput F64[3] copy 0\n");
  const cyxla::Program program(table, reference->spec());
  std::vector<double> copied(3);
  std::vector<double> longer(4);
  std::array<float, 3> narrow = {};
  const auto message = [&](const cyxla::Outputs& wrong) -> std::string {
    EXPECT_THROW(program.prepare(inputs, wrong), std::invalid_argument);
    try {
      program.execute(inputs, wrong);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no exception";
  };
  EXPECT_EQ(message({cyxla::output(sum), cyxla::output(longer)}),
            "output 1 of the program f must have 3 elements, not 4");
  EXPECT_EQ(message({cyxla::output(copied), nullptr}),
            "output 0 of the program f must have 1 element, not 3");
  EXPECT_EQ(message({cyxla::output(sum), cyxla::output(narrow)}),
            "output 1 of the program f must have element type F64 (12), not F32 (11)");
  EXPECT_EQ(message({nullptr, cyxla::Output(narrow.data(), 99, 3)}),
            "output 1 of the program f must have element type F64 (12), not unknown type (99)");
  EXPECT_EQ(copied, std::vector<double>(3));
  program.execute(inputs, {cyxla::output(sum), cyxla::output(copied)});
  EXPECT_EQ(copied, values);
  EXPECT_EQ(sum, 6);
}

TEST_F(CppHeaderTest, ManyOutputs) {
  std::string code = "input F64[3]\n";
  for (int i = 0; i < 40; ++i) {
    code += "output F64[3] copy 0\n";
  }
  const auto reference = compile(code);
  const cyxla::Program program(table, reference->spec());
  std::vector<std::vector<double>> results(40, std::vector<double>(3));
  std::vector<cyxla::Output> all;
  for (std::vector<double>& result : results) {
    all.push_back(cyxla::output(result));
  }
  program.execute(inputs, all);
  EXPECT_EQ(results, std::vector<std::vector<double>>(40, values));
}

TEST_F(CppHeaderTest, ACallIsReboundWithChecks) {
  const auto reference = compile(kSum);
  const cyxla::Program program(table, reference->spec());
  cyxla::Call call = program.prepare(inputs, {cyxla::output(sum)});
  const std::array<double, 3> others = {10, 20, 30};
  double other_sum = 0;
  call.rebind(0, cyxla::input(others));
  call.rebind(1, cyxla::output(other_sum));
  call();
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(other_sum, 60);
  const auto message = [&](std::size_t index, const auto& array) -> std::string {
    try {
      call.rebind(index, array);
    } catch (const std::invalid_argument& error) {
      return error.what();
    } catch (const cyxla::ExecutionError& error) {
      return std::to_string(error.code()) + " " + error.what();
    }
    return "no exception";
  };
  const std::vector<float> narrow(3);
  std::vector<double> three(3);
  EXPECT_EQ(message(0, cyxla::input(sum)), "input 0 of the program f must have 3 elements, not 1");
  EXPECT_EQ(message(0, cyxla::input(narrow)),
            "input 0 of the program f must have element type F64 (12), not F32 (11)");
  EXPECT_EQ(message(1, cyxla::input(values)),
            "array 1 of the program f is not an input: it has 1 input and then 1 output");
  EXPECT_EQ(message(0, cyxla::output(sum)),
            "array 0 of the program f is not an output: it has 1 input and then 1 output");
  EXPECT_EQ(message(2, cyxla::Output(nullptr)),
            "array 2 of the program f is not an output: it has 1 input and then 1 output");
  EXPECT_EQ(message(1, cyxla::output(three)),
            "output 0 of the program f must have 1 element, not 3");
  EXPECT_EQ(message(0, cyxla_input{nullptr, CYXLA_F64, 3}),
            "2 input 0 of the program f has 24 bytes, but its data is NULL");
  other_sum = 0;
  call();
  EXPECT_EQ(other_sum, 60);
  call.rebind(1, nullptr);
  other_sum = 0;
  call();
  EXPECT_EQ(other_sum, 0);
  call.rebind(1, &sum);
  call();
  EXPECT_EQ(sum, 60);
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
    // NOLINTBEGIN(bugprone-use-after-move): it has none
    EXPECT_THROW(first(), cyxla::ExecutionError);
    EXPECT_THROW(first.rebind(0, inputs[0]), cyxla::ExecutionError);
    EXPECT_THROW(first.rebind(1, nullptr), cyxla::ExecutionError);
    // NOLINTEND(bugprone-use-after-move)
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
  cyxla::Call call = program.prepare(inputs, outputs);
  fake.fail("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_INTERNAL, "burnt");
  try {
    call();
    FAIL();
  } catch (const cyxla::ExecutionError& error) {
    EXPECT_STREQ(error.what(),
                 "executing the program f failed: "
                 "PJRT_LoadedExecutable_Execute: INTERNAL: burnt");
    EXPECT_EQ(error.code(), CYXLA_ERROR_EXECUTION);
  }
}

}  // namespace
