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

// Bad arguments are rejected before the plugin is called.
class ArgumentsTest : public test::RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    program_ = compile("input F32[3]\ninput S64[2]\ninput F32[0]\noutput F32[3] copy 0\n", "model");
    good_ = {floats_.input(PJRT_Buffer_Type_F32),
             integers_.input(PJRT_Buffer_Type_S64),
             {nullptr, PJRT_Buffer_Type_F32, 0}};
  }
  void TearDown() override {
    program_.reset();
    RuntimeTest::TearDown();
  }

  const cyxla_program_spec* spec() const { return &program_->spec(); }

  void expect_refused(const cyxla_program_spec* spec, const cyxla_input* inputs,
                      void* const* outputs, const std::string& message) {
    const std::uint64_t calls = fake.all_calls();
    const std::uint64_t count = error_info().count;
    for (const int zero_copy : {0, 1}) {
      EXPECT_EQ(execute(spec, inputs, outputs, zero_copy), -1);
      EXPECT_EQ(last_message(), message);
      EXPECT_EQ(last_error_code(), ErrorCode::kArgument);
      record_error(ErrorCode::kInternal, "something else");
      EXPECT_EQ(prepare(spec, inputs, outputs, zero_copy), nullptr);
      EXPECT_EQ(last_message(), message);
      EXPECT_EQ(error_info().message, message);
    }
    EXPECT_EQ(error_info().count - count, 6U);  // four refusals, two of the test's own
    EXPECT_EQ(fake.all_calls(), calls);
  }
  void expect_refused(const std::vector<cyxla_input>& inputs, const std::string& message) {
    expect_refused(spec(), inputs.data(), outputs_.data(), message);
  }

  std::vector<cyxla_input> good_;
  Array<float> result_{{0, 0, 0}};
  std::vector<void*> outputs_ = {result_.data()};

 private:
  Array<float> floats_{{1, 2, 3}};
  Array<std::int64_t> integers_{{1, 2}};
  ProgramReference program_;
};

TEST_F(ArgumentsTest, GoodOnesAreTaken) {
  EXPECT_EQ(execute(spec(), good_.data(), outputs_.data(), 1), 0) << last_message();
  EXPECT_EQ(result_.values(), (std::vector<float>{1, 2, 3}));
}

TEST_F(ArgumentsTest, NoSpec) {
  expect_refused(nullptr, good_.data(), outputs_.data(),
                 "the program spec is NULL; get one from program_spec()");
}

TEST_F(ArgumentsTest, NoInputs) {
  expect_refused(spec(), nullptr, outputs_.data(),
                 "the program model takes 3 inputs, but `inputs` is NULL");
}

TEST_F(ArgumentsTest, NoOutputs) {
  expect_refused(spec(), good_.data(), nullptr,
                 "the program model has 1 output, but `outputs` is NULL");
}

TEST_F(ArgumentsTest, AnotherElementType) {
  std::vector<cyxla_input> inputs = good_;
  inputs[0].element_type = PJRT_Buffer_Type_F64;
  expect_refused(inputs,
                 "input 0 of the program model must have element type F32 (11), not F64 (12)");
  inputs = good_;
  inputs[1].element_type = -7;
  expect_refused(
      inputs, "input 1 of the program model must have element type S64 (5), not unknown type (-7)");
  inputs = good_;
  inputs[2].element_type = PJRT_Buffer_Type_S32;
  expect_refused(inputs,
                 "input 2 of the program model must have element type F32 (11), not S32 (4)");
}

TEST_F(ArgumentsTest, AnotherNumberOfElements) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{2}, std::size_t{4}, ~std::size_t{0}}) {
    std::vector<cyxla_input> inputs = good_;
    inputs[0].num_elements = count;
    expect_refused(
        inputs, "input 0 of the program model must have 3 elements, not " + std::to_string(count));
  }
  std::vector<cyxla_input> inputs = good_;
  inputs[2].num_elements = 1;
  expect_refused(inputs, "input 2 of the program model must have 0 elements, not 1");
}

TEST_F(ArgumentsTest, NoData) {
  std::vector<cyxla_input> inputs = good_;
  inputs[1].data = nullptr;
  expect_refused(inputs, "input 1 of the program model has 16 bytes, but its data is NULL");
}

TEST_F(ArgumentsTest, ANullCall) {
  EXPECT_EQ(call(nullptr), -1);
  EXPECT_EQ(last_message(), "the prepared call is NULL");
  discard(nullptr);
}

}  // namespace
}  // namespace cyxla::runtime
