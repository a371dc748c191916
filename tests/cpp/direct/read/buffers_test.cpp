// SPDX-License-Identifier: Apache-2.0
#include "direct/read/buffers.h"

#include "direct/sample_program.h"

namespace cyxla::direct {
namespace {

using namespace test;  // NOLINT: the messages' names
using Kind = Allocation::Kind;

TEST(Buffers, OfASampleProgram) {
  const Buffers buffers = SampleProgram().read();
  ASSERT_EQ(buffers.allocations.size(), 4u);
  EXPECT_EQ(buffers.inputs, std::vector<std::size_t>{1});
  EXPECT_EQ(buffers.outputs, std::vector<std::size_t>{0});
  EXPECT_EQ(buffers.allocations[0].kind, Kind::kOutput);
  EXPECT_EQ(buffers.allocations[0].size_bytes, 12u);
  EXPECT_FALSE(buffers.allocations[0].copied_input);
  EXPECT_EQ(buffers.allocations[1].kind, Kind::kInput);
  EXPECT_EQ(buffers.allocations[1].number, 0u);
  EXPECT_EQ(buffers.allocations[2].kind, Kind::kConstant);
  EXPECT_EQ(buffers.allocations[2].bytes, std::string("\5\0\0\0\6\0\0\0", 8));
  EXPECT_EQ(buffers.allocations[3].kind, Kind::kPrivate);
  EXPECT_EQ(buffers.allocations[3].size_bytes, 64u);
}

TEST(Buffers, SlicesLieInsideTheirAllocation) {
  const Buffers buffers = SampleProgram().read();
  EXPECT_EQ(buffers.slice(3, 60, 4).offset, 60u);
  EXPECT_EQ(buffers.slice(3, 64, 0).size_bytes, 0u);
  const std::string outside = " of an allocation of 64";
  EXPECT_EQ(refusal([&] { buffers.slice(3, 61, 4); }),
            "a step uses 4 bytes at offset 61" + outside);
  EXPECT_EQ(refusal([&] { buffers.slice(3, ~std::uint64_t{0}, 2); }),
            "a step uses 2 bytes at offset 18446744073709551615" + outside);
  EXPECT_EQ(refusal([&] { buffers.slice(3, 8, ~std::uint64_t{0}); }),
            "a step uses 18446744073709551615 bytes at offset 8" + outside);
  const std::string missing = "a step uses memory that the program does not have, allocation ";
  EXPECT_EQ(refusal([&] { buffers.slice(4, 0, 1); }), missing + "4");
  EXPECT_EQ(refusal([&] { buffers.slice(5, 0, 1); }), missing + "5");
}

TEST(Buffers, ADonatedInputIsCopiedIntoItsOutput) {
  SampleProgram program;
  program.allocations = {
      input_allocation(0, 12, 0,
                       number(7, 1) + number(13, 1) + assigned(kInput, 12) + assigned(kResult, 12)),
      constant_allocation(1, 8, assigned(kConstant, 8))};
  const Buffers buffers = program.read();
  const Allocation& input = buffers.allocations[buffers.inputs.at(0)];
  const Allocation& output = buffers.allocations[buffers.outputs.at(0)];
  EXPECT_EQ(input.kind, Kind::kInput);
  EXPECT_EQ(output.kind, Kind::kOutput);
  EXPECT_EQ(output.copied_input, 0u);
  EXPECT_EQ(buffers.slice(0, 0, 12).allocation, buffers.outputs[0]);
}

TEST(Buffers, TableOfATupleIsPrivate) {
  SampleProgram program;
  program.instructions.push_back(
      instruction(20, "tuple", tuple_shape({program.array}), operands({kResult})));
  program.root = 20;
  program.output = tuple_shape({program.array});
  program.buffers.push_back(buffer(20, 8, location(20)));
  program.allocations.push_back(output_allocation(5, 8, number(11, 1) + assigned(20, 8)));
  const Buffers buffers = program.read();
  EXPECT_EQ(buffers.allocations[buffers.slice(5, 0, 8).allocation].kind, Kind::kPrivate);
  EXPECT_EQ(buffers.outputs, std::vector<std::size_t>{0});
}

// The sample program with a root that passes on kResult through `instructions`.
SampleProgram passing_on(const std::vector<std::string>& instructions, std::uint64_t root,
                         const std::vector<std::string>& computations = {}) {
  SampleProgram program;
  program.instructions.insert(program.instructions.end(), instructions.begin(), instructions.end());
  program.root = root;
  program.computations = computations;
  return program;
}

TEST(Buffers, OutputsAreFoundThroughInstructionsThatPassThemOn) {
  const std::string array = SampleProgram().array;
  const std::string pair = tuple_shape({array, array});
  const auto outputs = [](const SampleProgram& program) { return program.read().outputs; };
  const std::vector<std::size_t> first{0};
  EXPECT_EQ(outputs(passing_on({instruction(20, "bitcast", array, operands({kResult}))}, 20)),
            first);
  const std::string tuple = instruction(20, "tuple", pair, operands({kInput, kResult}));
  const auto element = [&](std::uint64_t operand) {
    return instruction(22, "get-tuple-element", array, operands({operand}) + number(13, 1));
  };
  EXPECT_EQ(outputs(passing_on({tuple, element(20)}, 22)), first);
  const std::string loop = instruction(21, "while", pair, operands({20}));
  EXPECT_EQ(outputs(passing_on({tuple, loop, element(21)}, 22)), first);
  const std::string inner =
      computation(5, 30, {instruction(30, "bitcast", array, operands({kResult}))});
  EXPECT_EQ(outputs(passing_on({instruction(20, "call", array, calls({5}))}, 20, {inner})), first);
  EXPECT_EQ(
      outputs(passing_on({instruction(20, "conditional", array, calls({5, 5}))}, 20, {inner})),
      first);
}

TEST(Buffers, OutputsAreFoundByTheirAliases) {
  SampleProgram program = passing_on({instruction(20, "copy", SampleProgram().array)}, 20);
  EXPECT_EQ(program.refused(), "cannot find the buffer of output 0");
  program.aliases = bytes(2, number(1, kResult) + bytes(2, location(20)));
  EXPECT_EQ(program.read().outputs, std::vector<std::size_t>{0});
  program.aliases += bytes(2, number(1, kInput) + bytes(2, location(20)));
  EXPECT_EQ(program.refused(), "a value of the program does not have exactly one buffer");
  program.aliases = bytes(2, number(1, 77) + bytes(2, location(20)));
  EXPECT_EQ(program.refused(), "a value of the program does not have exactly one buffer");
}

TEST(Buffers, RefusesOutputsThatAreNotFound) {
  const std::string array = SampleProgram().array;
  const std::string unknown = "cannot find the buffer of output 0";
  const auto passed = [&](std::string_view opcode, const std::string& more) {
    return passing_on({instruction(20, opcode, array, more)}, 20).refused();
  };
  EXPECT_EQ(passed("add", operands({kResult})), unknown);
  EXPECT_EQ(passed("tuple", operands({kResult})), unknown);  // not below a tuple
  EXPECT_EQ(passed("call", ""), unknown);
  EXPECT_EQ(passed("bitcast", operands({20})), unknown);            // a circle
  EXPECT_EQ(passed("get-tuple-element", operands({20})), unknown);  // one that grows
  EXPECT_EQ(passed("bitcast", ""), "HLO instruction 20 lacks an operand");
  EXPECT_EQ(passed("bitcast", operands({99})),
            "the program has no HLO instruction with the number 99");

  const std::string one =
      computation(5, 30, {instruction(30, "bitcast", array, operands({kResult}))});
  const std::string other =
      computation(6, 31, {instruction(31, "bitcast", array, operands({kInput}))});
  EXPECT_EQ(passing_on({instruction(20, "conditional", array, calls({5, 6}))}, 20, {one, other})
                .refused(),
            "output 0 has several buffers");
}

TEST(Buffers, RefusesAnotherSignature) {
  SampleProgram program;
  program.expected = {{12, 4}, {12}};
  EXPECT_EQ(program.refused(), "the kernels have 1 input, the program 2");
  program.expected = {{16}, {12}};
  EXPECT_EQ(program.refused(), "input 0 has 12 bytes for the kernels and 16 for the program");
  program.expected = {{12}, {}};
  EXPECT_EQ(program.refused(), "the kernels have 1 output, the program 0");
  program.expected = {{12}, {8}};
  EXPECT_EQ(program.refused(), "output 0 has 12 bytes for the kernels and 8 for the program");
}

std::string with_allocation(std::size_t number, const std::string& bytes) {
  SampleProgram program;
  program.allocations[number] = bytes;
  return program.refused();
}

TEST(Buffers, RefusesOutputsWithoutMemoryOfTheirOwn) {
  const std::string shared = "output 0 shares its buffer with other values";
  EXPECT_EQ(with_allocation(0, output_allocation(0, 16, assigned(kResult, 12))), shared);
  EXPECT_EQ(with_allocation(0, output_allocation(0, 16, assigned(kResult, 12, 4))), shared);
  const std::string none = "output 0 has no buffer of its own";
  EXPECT_EQ(with_allocation(0, allocation(0, 12, assigned(kResult, 12))), none);
  EXPECT_EQ(with_allocation(0, output_allocation(0, 12, number(3, 1) + assigned(kResult, 12))),
            none);
  EXPECT_EQ(with_allocation(0, output_allocation(0, 12, number(12, 1) + assigned(kResult, 12))),
            none);
  EXPECT_EQ(with_allocation(3, output_allocation(3, 64, "")),
            "the program has a buffer for an output that it does not return");

  const std::string array = SampleProgram().array;
  SampleProgram twice = passing_on(
      {instruction(20, "tuple", tuple_shape({array, array}), operands({kResult, kResult}))}, 20);
  twice.output = tuple_shape({array, array});
  twice.expected = {{12}, {12, 12}};
  EXPECT_EQ(twice.refused(), "output 1 shares its buffer with another output");
}

TEST(Buffers, RefusesInputsThatAreNoArrays) {
  const std::string value = assigned(kInput, 12);
  EXPECT_EQ(with_allocation(1, input_allocation(1, 12, 1, value)),
            "the buffers of the inputs are not numbered consecutively");
  EXPECT_EQ(with_allocation(3, input_allocation(3, 12, 0)),
            "the buffers of the inputs are not numbered consecutively");
  EXPECT_EQ(with_allocation(1, allocation(1, 12, value)), "input 0 has no buffer");
  const std::string no_array = "the buffer of input 0 is not the buffer of one array";
  EXPECT_EQ(with_allocation(1, input_allocation(1, 16, 0, value)), no_array);
  EXPECT_EQ(with_allocation(1, input_allocation(1, 12, 0, value + number(7, 1))), no_array);
  EXPECT_EQ(with_allocation(1, input_allocation(1, 12, 0, value + number(11, 1))), no_array);
  EXPECT_EQ(with_allocation(1, input_allocation(1, 12, 0, value + number(12, 1))), no_array);
  EXPECT_EQ(with_allocation(1, input_allocation(1, 12, 0, value + test::packed(10, {0}))),
            "field 10 (parameter_shape_index) of a buffer allocation is set, which cyxla does not "
            "support");
}

TEST(Buffers, RefusesConstantsWithoutElements) {
  EXPECT_EQ(with_allocation(2, constant_allocation(2, 8, "")),
            "the buffer of a constant holds 0 values");
  EXPECT_EQ(with_allocation(2, constant_allocation(2, 16, assigned(kConstant, 8))),
            "a constant of 8 bytes has a buffer of 16");
  SampleProgram program;
  program.instructions[1] = instruction(kConstant, "constant", program.indices);
  EXPECT_EQ(program.refused(), "the program lacks the elements of a constant");
  program.instructions[1] = instruction(kConstant, "iota", program.indices);
  EXPECT_EQ(program.refused(), "the program lacks the elements of a constant");
}

TEST(Buffers, RefusesLargePrograms) {
  EXPECT_EQ(with_allocation(3, allocation(3, 1048577)),
            "the program uses a buffer of 1048577 bytes; above 1048576, calling it directly would "
            "not help");
  SampleProgram program;
  for (std::uint64_t i = 5; i < 13; ++i) {
    program.allocations.push_back(allocation(i, 1048576));
  }
  EXPECT_EQ(program.refused(),
            "the program uses more than 8388608 bytes, so calling it directly would not help");
  SampleProgram scratch;
  scratch.allocations[4] = allocation(4, std::uint64_t{1} << 60, number(3, 1));
  EXPECT_NO_THROW(scratch.read());
}

TEST(BufferAssignment, RefusesBuffersOutsideTheirAllocation) {
  const auto assigned_to_output = [](const std::string& value) {
    return with_allocation(0, output_allocation(0, 12, value));
  };
  const std::string unfit = "buffer 12 does not fit its allocation";
  EXPECT_EQ(assigned_to_output(assigned(kResult, 8)), unfit);
  EXPECT_EQ(assigned_to_output(assigned(kResult, 12, 1)), unfit);
  EXPECT_EQ(assigned_to_output(assigned(kResult, 12, ~std::uint64_t{0})), unfit);
  EXPECT_EQ(assigned_to_output(assigned(99, 8)), "buffer 99 is not assigned to one allocation");
  EXPECT_EQ(assigned_to_output(assigned(kResult, 12) + assigned(kResult, 12)),
            "buffer 12 is not assigned to one allocation");
}

TEST(BufferAssignment, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(with_allocation(3, allocation(3, 64, number(8, 1))),
            "field 8 (color) of a buffer allocation has a value that cyxla does not support");
  EXPECT_EQ(with_allocation(3, allocation(2, 64)),
            "the buffer allocations are not numbered consecutively");
  EXPECT_EQ(with_allocation(3, allocation(3, 64, number(14, 1))),
            "a buffer allocation has field 14, which this cyxla does not know");
  EXPECT_EQ(
      with_allocation(3, allocation(3, 64, number(7, 2))),
      "field 7 (maybe_live_out) of a buffer allocation has a value that cyxla does not support");
  EXPECT_EQ(with_allocation(3, allocation(3, 64, bytes(9, number(5, 1)))),
            "an assigned buffer has field 5, which this cyxla does not know");

  const auto with_more = [](const std::string& more) {
    SampleProgram program;
    program.aliases = more;
    return program.refused();
  };
  EXPECT_EQ(with_more(bytes(6, "")),
            "the buffer assignment has field 6, which this cyxla does not know");
  EXPECT_EQ(with_more(bytes(1, number(4, 1))),
            "field 4 (color) of a buffer has a value that cyxla does not support");
  EXPECT_EQ(with_more(bytes(1, number(5, 1))),
            "a buffer has field 5, which this cyxla does not know");
  EXPECT_EQ(with_more(bytes(1, bytes(3, number(1, 1)))),
            "the location of a buffer has field 1, which this cyxla does not know");
  EXPECT_EQ(with_more(bytes(2, number(3, 1))),
            "an alias of a buffer has field 3, which this cyxla does not know");
  EXPECT_EQ(with_more(bytes(1, number(1, kInput))), "two buffers have the number 10");
}

}  // namespace
}  // namespace cyxla::direct
