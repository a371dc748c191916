// SPDX-License-Identifier: Apache-2.0
#include "direct/read/program_facts.h"

#include <string>
#include <vector>

#include "direct/sample_program.h"

namespace cyxla::direct {
namespace {

using test::bytes;
using test::instruction;
using test::kernel;
using test::number;
using test::operands;
using test::packed;
using test::SampleProgram;
using test::shape;
using test::step;

using Texts = std::vector<std::string>;

Texts obstacles(const std::string& steps) {
  SampleProgram program;
  program.steps = steps;
  return read_facts(program.serialized()).obstacles;
}

std::string groups(std::uint64_t count) {
  return step(11, "kernel", bytes(1, "f") + bytes(2, number(1, count) + number(2, 1)));
}

TEST(ProgramFacts, NamesWhatKeepsAProgramOffTheDirectRoute) {
  EXPECT_EQ(obstacles(kernel("f", "") + step(12, "copy", "")), Texts{});
  EXPECT_EQ(obstacles(step(7, "dot", "") + step(6, "xnn", "") + step(21, "ynn", "")), Texts{});
  EXPECT_EQ(obstacles(step(5, "sort", "") + step(5, "sort", "") + step(16, "custom-call", "")),
            (Texts{"a sort", "a custom call"}));
  EXPECT_EQ(obstacles(groups(1)), Texts{});
  EXPECT_EQ(obstacles(groups(2)), Texts{"a kernel with several work groups"});
  const std::string fft = step(13, "fft", "");
  EXPECT_EQ(obstacles(step(3, "call", bytes(1, fft))), Texts{"a Fourier transform"});
  EXPECT_EQ(obstacles(step(4, "conditional", bytes(1, "") + bytes(1, fft))),
            Texts{"a Fourier transform"});
}

TEST(ProgramFacts, NamesLoops) {
  SampleProgram program;
  program.instructions.push_back(test::counted_loop(13, program.array, 2, 1));
  EXPECT_EQ(read_facts(program.serialized()).obstacles, Texts{"a loop"});
}

TEST(ProgramFacts, ListsTheProducts) {
  const auto product = [](const test::Numbers& lhs, const test::Numbers& rhs,
                          const std::string& dimensions) {
    SampleProgram program;
    program.instructions.push_back(instruction(20, "parameter", shape(ElementType::kF64, lhs)));
    program.instructions.push_back(instruction(21, "parameter", shape(ElementType::kF64, rhs)));
    program.instructions.push_back(instruction(22, "dot", shape(ElementType::kF64, {1}),
                                               operands({20, 21}) + bytes(30, dimensions)));
    const ProgramFacts facts = read_facts(program.serialized());
    EXPECT_EQ(facts.num_instructions, 6u);
    EXPECT_EQ(facts.products.size(), 1u);
    return facts.products.at(0);
  };
  const Product plain = product({4, 6}, {6, 8}, packed(1, {1}) + packed(2, {0}));
  EXPECT_EQ(plain.element_type, ElementType::kF64);
  EXPECT_EQ(plain.batch, 1);
  EXPECT_EQ(plain.m, 4);
  EXPECT_EQ(plain.k, 6);
  EXPECT_EQ(plain.n, 8);
  EXPECT_FALSE(plain.is_lhs_transposed || plain.is_rhs_transposed);
  const Product transposed = product({6, 4}, {8, 6}, packed(1, {0}) + packed(2, {1}));
  EXPECT_EQ(transposed.m, 4);
  EXPECT_EQ(transposed.n, 8);
  EXPECT_TRUE(transposed.is_lhs_transposed && transposed.is_rhs_transposed);
  const Product batch = product({5, 4, 6}, {5, 6, 8},
                                packed(1, {2}) + packed(2, {1}) + packed(3, {0}) + packed(4, {0}));
  EXPECT_EQ(batch.batch, 5);
  EXPECT_EQ(batch.multiplications(), 5 * 4 * 6 * 8);
  EXPECT_FALSE(batch.is_lhs_transposed || batch.is_rhs_transposed);
}

}  // namespace
}  // namespace cyxla::direct
