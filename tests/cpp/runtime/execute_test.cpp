// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <complex>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::last_message;
using test::ProgramReference;

// The plugin's behaviour, and whether the caller asks for zero copy.
struct Route {
  const char* name;
  int views;
  int not_on_cpu;
  int asynchronous;
  int null_events;
  int zero_copy;
};

constexpr Route kRoutes[] = {
    {"aliased_copy", 0, 0, 0, 0, 0},   {"aliased_zero_copy", 0, 0, 0, 0, 1},
    {"no_views_copy", 2, 0, 0, 0, 0},  {"no_views_zero_copy", 2, 0, 0, 0, 1},
    {"copying_views", 1, 0, 0, 0, 1},  {"on_a_device", 0, 1, 0, 0, 1},
    {"asynchronous", 0, 0, 1, 0, 1},   {"asynchronous_on_a_device", 0, 1, 1, 0, 0},
    {"without_events", 0, 0, 0, 1, 1}, {"asynchronous_without_events", 0, 0, 1, 1, 1},
};

class ExecuteTest : public test::RuntimeTest, public ::testing::WithParamInterface<Route> {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    fake.set(FAKE_PLUGIN_VIEWS, GetParam().views);
    fake.set(FAKE_PLUGIN_NOT_ON_CPU, GetParam().not_on_cpu);
    fake.set(FAKE_PLUGIN_ASYNCHRONOUS, GetParam().asynchronous);
    fake.set(FAKE_PLUGIN_DELAY_US, 1000 * GetParam().asynchronous);
    fake.set(FAKE_PLUGIN_NULL_EXECUTE_EVENTS, GetParam().null_events);
    fake.set(FAKE_PLUGIN_NULL_COPY_EVENTS, GetParam().null_events);
  }

  int run(const ProgramReference& program, const std::vector<cyxla_input>& inputs,
          const std::vector<void*>& outputs) {
    return execute(&program->spec(), inputs.data(), outputs.data(), GetParam().zero_copy);
  }

  // Copies, adds and sums `values` in a program of their type.
  template <typename Element>
  void expect_arithmetic(const char* name, std::int32_t type, const std::vector<Element>& values,
                         const std::vector<Element>& doubled, Element sum) {
    const std::string array = std::string(name) + "[" + std::to_string(values.size()) + "]";
    const ProgramReference program =
        compile("input " + array + "\noutput " + array + " copy 0\noutput " + array +
                " add 0 0\noutput " + name + "[] sum 0\n");
    const Array<Element> input(values);
    const Array<Element> copied(std::vector<Element>(values.size()));
    const Array<Element> added(std::vector<Element>(values.size()));
    const Array<Element> total(std::vector<Element>(1));
    ASSERT_EQ(run(program, {input.input(type)}, {copied.data(), added.data(), total.data()}), 0)
        << last_message();
    EXPECT_EQ(copied.values(), values) << name;
    EXPECT_EQ(added.values(), doubled) << name;
    EXPECT_EQ(total.values(), std::vector<Element>{sum}) << name;
    EXPECT_EQ(input.values(), values) << name;
  }
};

TEST_P(ExecuteTest, ArithmeticTypes) {
  expect_arithmetic<std::int8_t>("S8", PJRT_Buffer_Type_S8, {1, -2, 3}, {2, -4, 6}, 2);
  expect_arithmetic<std::int16_t>("S16", PJRT_Buffer_Type_S16, {1, -200}, {2, -400}, -199);
  expect_arithmetic<std::int32_t>("S32", PJRT_Buffer_Type_S32, {1, -70000}, {2, -140000}, -69999);
  expect_arithmetic<std::int64_t>("S64", PJRT_Buffer_Type_S64, {std::int64_t{1} << 40, 1},
                                  {std::int64_t{1} << 41, 2}, (std::int64_t{1} << 40) + 1);
  expect_arithmetic<std::uint8_t>("U8", PJRT_Buffer_Type_U8, {1, 200}, {2, 144}, 201);
  expect_arithmetic<std::uint16_t>("U16", PJRT_Buffer_Type_U16, {1, 30000}, {2, 60000}, 30001);
  expect_arithmetic<std::uint32_t>("U32", PJRT_Buffer_Type_U32, {1, 2}, {2, 4}, 3);
  expect_arithmetic<std::uint64_t>("U64", PJRT_Buffer_Type_U64, {1, 2}, {2, 4}, 3);
  expect_arithmetic<float>("F32", PJRT_Buffer_Type_F32, {0.5F, -1.5F}, {1.0F, -3.0F}, -1.0F);
  expect_arithmetic<double>("F64", PJRT_Buffer_Type_F64, {0.5, -1.5}, {1.0, -3.0}, -1.0);
  expect_arithmetic<std::complex<float>>("C64", PJRT_Buffer_Type_C64, {{1, 2}, {3, -4}},
                                         {{2, 4}, {6, -8}}, {4, -2});
  expect_arithmetic<std::complex<double>>("C128", PJRT_Buffer_Type_C128, {{1, 2}, {3, -4}},
                                          {{2, 4}, {6, -8}}, {4, -2});
}

TEST_P(ExecuteTest, EveryElementTypePassesUnchanged) {
  for (std::int32_t type = 1; type <= PJRT_Buffer_Type_F4E2M1FN; ++type) {
    const std::size_t size = pjrt::itemsize(type);
    if (size == 0) {
      continue;
    }
    const std::string array = std::string(pjrt::element_type_name(type)) + "[2,3]";
    const ProgramReference program = compile("input " + array + "\noutput " + array + " copy 0\n");
    std::vector<unsigned char> bytes(6 * size);
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(type));
    const Array<unsigned char> input(bytes);
    const Array<unsigned char> output(std::vector<unsigned char>(bytes.size()));
    ASSERT_EQ(run(program, {{input.data(), type, 6}}, {output.data()}), 0) << last_message();
    EXPECT_EQ(output.values(), bytes) << array;
  }
}

TEST_P(ExecuteTest, ScalarsEmptyArraysAndRepeatedOutputs) {
  const ProgramReference program = compile(
      "input F32[]\n"
      "input F32[0,4]\n"
      "output F32[] scale 0 2\n"
      "output F32[] sum 1\n"
      "output F32[0,3] copy 1\n"
      "output F32[] copy 0\n"
      "output F32[] copy 0\n");
  for (int i = 0; i < 4; ++i) {
    const float scalar = 3.0F + static_cast<float>(i);
    std::vector<float> results(4, -1);
    ASSERT_EQ(run(program, {{&scalar, PJRT_Buffer_Type_F32, 1}, {nullptr, PJRT_Buffer_Type_F32, 0}},
                  {&results[0], &results[1], nullptr, &results[2], &results[3]}),
              0)
        << last_message();
    EXPECT_EQ(results, (std::vector<float>{2 * scalar, 0, scalar, scalar}));
  }
}

TEST_P(ExecuteTest, NoInputsAndNoOutputs) {
  const ProgramReference constant = compile("output S64[2,2] iota\n");
  std::vector<std::int64_t> result(4, -1);
  void* const outputs[] = {result.data()};
  ASSERT_EQ(execute(&constant->spec(), nullptr, outputs, GetParam().zero_copy), 0)
      << last_message();
  EXPECT_EQ(result, (std::vector<std::int64_t>{0, 1, 2, 3}));

  const ProgramReference sink = compile("input F32[3]\n");
  const Array<float> input({1, 2, 3});
  ASSERT_EQ(execute(&sink->spec(), std::vector{input.input(PJRT_Buffer_Type_F32)}.data(), nullptr,
                    GetParam().zero_copy),
            0)
      << last_message();

  const ProgramReference nothing = compile("");
  EXPECT_EQ(execute(&nothing->spec(), nullptr, nullptr, GetParam().zero_copy), 0) << last_message();
}

TEST_P(ExecuteTest, NullOutputsAreDropped) {
  const ProgramReference program =
      compile("output S32[] fill 1\noutput S32[] fill 2\noutput S32[] fill 3\n");
  std::int32_t second = 0;
  ASSERT_EQ(run(program, {}, {nullptr, &second, nullptr}), 0) << last_message();
  EXPECT_EQ(second, 2);
  ASSERT_EQ(run(program, {}, {nullptr, nullptr, nullptr}), 0) << last_message();
}

// Inputs may be at any address, and may change and move between calls; earlier results stay the
// same.
TEST_P(ExecuteTest, InputsMayChangeMoveAndBeMisaligned) {
  const ProgramReference program =
      compile("input F32[100]\ninput F32[100]\noutput F32[100] add 0 1\noutput F32[100] copy 0\n");
  const std::vector<float> ones(100, 1);
  std::vector<float> result(100);
  std::vector<float> copied(100);
  for (const std::size_t offset : {0, 1, 4, 16, 32, 63, 64, 0}) {
    Array<float> left(ones, offset);
    const Array<float> right(ones, offset == 0 ? 4 : 0);
    for (int i = 0; i < 4; ++i) {
      const auto value = static_cast<float>(offset) + static_cast<float>(i);
      left.assign(std::vector<float>(100, value));
      ASSERT_EQ(run(program, {left.input(PJRT_Buffer_Type_F32), right.input(PJRT_Buffer_Type_F32)},
                    {result.data(), copied.data()}),
                0)
          << last_message();
      EXPECT_EQ(result, std::vector<float>(100, value + 1)) << offset;
      EXPECT_EQ(copied, std::vector<float>(100, value)) << offset;
      EXPECT_EQ(right.values(), ones);
    }
  }
}

TEST_P(ExecuteTest, OneArrayMayBeSeveralInputs) {
  const ProgramReference program = compile("input S32[4]\ninput S32[4]\noutput S32[4] add 0 1\n");
  const Array<std::int32_t> both({1, 2, 3, 4});
  const Array<std::int32_t> result({0, 0, 0, 0});
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(run(program, {both.input(PJRT_Buffer_Type_S32), both.input(PJRT_Buffer_Type_S32)},
                  {result.data()}),
              0);
    EXPECT_EQ(result.values(), (std::vector<std::int32_t>{2, 4, 6, 8}));
    EXPECT_EQ(both.values(), (std::vector<std::int32_t>{1, 2, 3, 4}));
  }
}

TEST_P(ExecuteTest, LargeArrays) {
  const ProgramReference program = compile("input F64[1000,100]\noutput F64[1000,100] scale 0 3\n");
  std::vector<double> values(100000);
  std::iota(values.begin(), values.end(), 0.0);
  const Array<double> input(values, 8);
  const Array<double> result(std::vector<double>(values.size()));
  ASSERT_EQ(run(program, {input.input(PJRT_Buffer_Type_F64)}, {result.data()}), 0);
  for (double& value : values) {
    value *= 3;
  }
  EXPECT_EQ(result.values(), values);
}

TEST_P(ExecuteTest, NothingAccumulatesOverManyCalls) {
  const ProgramReference program =
      compile("input F32[8]\ninput F32[8]\noutput F32[8] add 0 1\noutput F32[] sum 0\n");
  const Array<float> left(std::vector<float>(8, 1));
  const Array<float> right(std::vector<float>(8, 2), 4);
  std::vector<float> result(8);
  float sum = 0;
  const auto call = [&] {
    return run(program, {left.input(PJRT_Buffer_Type_F32), right.input(PJRT_Buffer_Type_F32)},
               {result.data(), &sum});
  };
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(call(), 0) << last_message();
  }
  const std::int64_t live = fake.live();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(call(), 0) << last_message();
  }
  EXPECT_EQ(fake.live(), live) << fake.live_by_kind();
}

INSTANTIATE_TEST_SUITE_P(Routes, ExecuteTest, ::testing::ValuesIn(kRoutes),
                         [](const auto& route) { return std::string(route.param.name); });

}  // namespace
}  // namespace cyxla::runtime
