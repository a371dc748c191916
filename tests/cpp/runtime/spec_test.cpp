// SPDX-License-Identifier: Apache-2.0
// What the public spec of a program says.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::ProgramReference;

constexpr const char* kCode =
    "input F32[3]\n"
    "input F64[2,5]\n"
    "input PRED[]\n"
    "output S8[0,4] fill 1\n"
    "output C128[2] fill 1\n";

class SpecTest : public test::RuntimeTest {
 protected:
  ProgramReference compile_named(std::vector<std::string> inputs,
                                 std::vector<std::string> outputs) {
    Signature signature = test::signature_of(kCode, "model");
    signature.input_names = std::move(inputs);
    signature.output_names = std::move(outputs);
    return loaded().compile(test::request_of(kCode, signature)).program;
  }
};

std::vector<std::vector<std::int64_t>> dimensions(const std::int64_t* const* rows,
                                                  const std::size_t* ranks, std::size_t count) {
  std::vector<std::vector<std::int64_t>> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.emplace_back(rows[i], rows[i] + ranks[i]);
  }
  return result;
}

std::vector<std::string> texts(const char* const* names, std::size_t count) {
  return {names, names + count};
}

void expect_everything(const cyxla_program_spec& spec) {
  using Sizes = std::vector<std::size_t>;
  using Types = std::vector<std::int32_t>;
  ASSERT_EQ(spec.struct_size, sizeof(cyxla_program_spec));
  ASSERT_EQ(spec.num_inputs, 3U);
  ASSERT_EQ(spec.num_outputs, 2U);
  EXPECT_EQ(Types(spec.input_types, spec.input_types + 3),
            (Types{CYXLA_F32, CYXLA_F64, CYXLA_PRED}));
  EXPECT_EQ(Types(spec.output_types, spec.output_types + 2), (Types{CYXLA_S8, CYXLA_C128}));
  EXPECT_EQ(Sizes(spec.input_elements, spec.input_elements + 3), (Sizes{3, 10, 1}));
  EXPECT_EQ(Sizes(spec.output_elements, spec.output_elements + 2), (Sizes{0, 2}));
  EXPECT_EQ(Sizes(spec.input_bytes, spec.input_bytes + 3), (Sizes{12, 80, 1}));
  EXPECT_EQ(Sizes(spec.output_bytes, spec.output_bytes + 2), (Sizes{0, 32}));
  EXPECT_EQ(Sizes(spec.input_ranks, spec.input_ranks + 3), (Sizes{1, 2, 0}));
  EXPECT_EQ(Sizes(spec.output_ranks, spec.output_ranks + 2), (Sizes{2, 1}));
  using Rows = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(dimensions(spec.input_dimensions, spec.input_ranks, 3), (Rows{{3}, {2, 5}, {}}));
  EXPECT_EQ(dimensions(spec.output_dimensions, spec.output_ranks, 2), (Rows{{0, 4}, {2}}));
  EXPECT_STREQ(spec.name, "model");
}

TEST_F(SpecTest, TellsTypesShapesAndNamesAlsoAfterShutdown) {
  const ProgramReference program =
      compile_named({"x", "d['a']", "flag"}, {"result[0]", "result[1]"});
  for (int i = 0; i < 2; ++i) {
    const cyxla_program_spec& spec = program->spec();
    expect_everything(spec);
    EXPECT_EQ(texts(spec.input_names, 3), (std::vector<std::string>{"x", "d['a']", "flag"}));
    EXPECT_EQ(texts(spec.output_names, 2), (std::vector<std::string>{"result[0]", "result[1]"}));
    Runtime::shut_down();
  }
}

TEST_F(SpecTest, UnknownNamesAreEmpty) {
  const ProgramReference program = compile_named({}, {});
  expect_everything(program->spec());
  EXPECT_EQ(texts(program->spec().input_names, 3), std::vector<std::string>(3));
  EXPECT_EQ(texts(program->spec().output_names, 2), std::vector<std::string>(2));
}

// Callers that execute read one cache line of it.
TEST_F(SpecTest, WhatExecuteReadsIsTogether) {
  const ProgramReference program = compile_named({}, {});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&program->spec()) % CYXLA_ALIGNMENT, 0U);
  static_assert(offsetof(cyxla_program_spec, input_bytes) + sizeof(void*) == CYXLA_ALIGNMENT);
}

}  // namespace
}  // namespace cyxla::runtime
