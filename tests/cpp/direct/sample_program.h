// SPDX-License-Identifier: Apache-2.0
// A serialized program with a kernel, a constant and temporary memory, whose parts a test may
// change: f32[3] and s32[2] constant to f32[3].
#pragma once

#include <string>
#include <vector>

#include "direct/messages.h"
#include "direct/read/buffers.h"

namespace cyxla::direct::test {

// Ids of the instructions and, where they define a buffer, of their buffers too.
constexpr std::uint64_t kInput = 10;
constexpr std::uint64_t kConstant = 11;
constexpr std::uint64_t kResult = 12;

struct SampleProgram {
  std::string array = shape(ElementType::kF32, {3});
  std::string indices = shape(ElementType::kS32, {2});

  std::vector<std::string> instructions = {
      instruction(kInput, "parameter", array),
      instruction(kConstant, "constant", indices, bytes(8, bytes(1, indices) + packed(4, {5, 6}))),
      instruction(kResult, "fusion", array, operands({kInput, kConstant})),
  };
  std::uint64_t root = kResult;
  std::vector<std::string> computations;  // beside the entry
  std::vector<std::string> inputs = {array};
  std::string output = array;

  std::vector<std::string> buffers = {
      buffer(kInput, 12, location(kInput)),
      buffer(kConstant, 8, location(kConstant)),
      buffer(kResult, 12, location(kResult)),
  };
  std::string aliases;
  std::vector<std::string> allocations = {
      output_allocation(0, 12, assigned(kResult, 12)),
      input_allocation(1, 12, 0, assigned(kInput, 12)),
      constant_allocation(2, 8, assigned(kConstant, 8)),
      allocation(3, 64),
      allocation(4, 4, number(3, 1)),  // thread-local
  };
  Expected expected = {{12}, {12}};

  std::string steps =
      kernel("f", bytes(5, slice(1, 0, 12)) + bytes(5, slice(2, 0, 8)) + bytes(6, slice(0, 0, 12)));
  std::string symbols = bytes(7, number(1, 1) + bytes(2, "f"));
  std::string objects = bytes(8, bytes(1, "ELF") + bytes(2, "name"));
  std::string target = bytes(9, bytes(1, "x86_64-unknown-linux-gnu") + bytes(2, "cpu"));
  std::uint64_t objects_kind = 2;

  std::string module() const {
    std::vector<std::string> all = computations;
    all.push_back(computation(1, root, instructions));
    return test::module(all, 1, inputs, output);
  }
  std::string assignment() const { return test::assignment(buffers, allocations, aliases); }
  std::string result() const {
    return bytes(1, bytes(1, module()) + bytes(2, "config")) + bytes(2, assignment()) +
           number(5, objects_kind) + bytes(6, steps) + symbols + objects + target;
  }
  std::string serialized() const { return bytes(1, result()) + bytes(2, "options"); }

  // Throws Refusal.
  Buffers read() const {
    const std::string module_bytes = module();
    const std::string assignment_bytes = assignment();
    return read_buffers(BufferAssignment(assignment_bytes), HloModule(module_bytes), expected);
  }
  std::string refused() const {
    return refusal([&] { read(); });
  }
};

}  // namespace cyxla::direct::test
