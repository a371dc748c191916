// SPDX-License-Identifier: Apache-2.0
#include "direct/read/buffers.h"

#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "direct/read/literal.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

constexpr std::size_t kMaxProgramBytes = 8 * kMaxArrayBytes;
// A limit for malformed programs: instructions that pass on one output.
constexpr std::size_t kMaxPassedOn = 4096;
constexpr std::size_t kMaxTupleDepth = 4;

std::string output_name(std::size_t number) { return "output " + std::to_string(number); }

// The values that may be the one at `location`, if its instruction only passes values on.
std::vector<Location> origins(const HloModule& module, const Location& location) {
  const Instruction& instruction = module.instruction(location.instruction);
  const std::vector<std::uint64_t>& index = location.shape_index;
  const auto operand = [&](std::uint64_t number) {
    if (number >= instruction.operands.size()) {
      throw Refusal(Reason::kMalformed,
                    "HLO instruction " + std::to_string(instruction.id) + " lacks an operand");
    }
    return instruction.operands[number];
  };
  if (instruction.opcode == "tuple" && !index.empty()) {
    return {{operand(index.front()), {index.begin() + 1, index.end()}}};
  }
  if (instruction.opcode == "get-tuple-element" && index.size() < kMaxTupleDepth) {
    std::vector<std::uint64_t> longer{instruction.tuple_index};
    longer.insert(longer.end(), index.begin(), index.end());
    return {{operand(0), std::move(longer)}};
  }
  if (instruction.opcode == "bitcast" || instruction.opcode == "while") {
    return {{operand(0), index}};
  }
  std::vector<Location> roots;
  if (instruction.opcode == "call" || instruction.opcode == "conditional") {
    for (const std::uint64_t computation : instruction.called_computations) {
      roots.push_back({module.root(computation).id, index});
    }
  }
  return roots;
}

// Finds the memory of an output through the instructions that pass it on to the root.
BufferSlice find_slice(const BufferAssignment& assignment, const HloModule& module, Location output,
                       const std::string& name) {
  std::optional<BufferSlice> slice;
  std::set<Location> seen{output};
  std::vector<Location> pending{std::move(output)};
  while (!pending.empty()) {
    const Location location = std::move(pending.back());
    pending.pop_back();
    if (const auto found = assignment.slice(location)) {
      if (slice && *slice != *found) {
        throw Refusal(Reason::kBufferLayout, name + " has several buffers");
      }
      slice = found;
      continue;
    }
    std::vector<Location> passed_on = origins(module, location);
    if (passed_on.empty()) {
      throw Refusal(Reason::kBufferLayout, "cannot find the buffer of " + name);
    }
    for (Location& origin : passed_on) {
      if (seen.insert(origin).second) {
        pending.push_back(std::move(origin));
      }
    }
    if (seen.size() > kMaxPassedOn) {
      throw Refusal(Reason::kTooLarge, "too many values may be " + name);
    }
  }
  if (!slice) {
    throw Refusal(Reason::kBufferLayout, "cannot find the buffer of " + name);
  }
  return *slice;
}

std::string read_constant(const BufferAssignment& assignment, const HloModule& module,
                          const BufferAssignment::Allocation& allocation) {
  if (allocation.buffers.size() != 1) {
    throw Refusal(Reason::kBufferLayout, "the buffer of a constant holds " +
                                             std::to_string(allocation.buffers.size()) + " values");
  }
  const Location& location = assignment.definition(allocation.buffers.front());
  const Instruction& instruction = module.instruction(location.instruction);
  if (instruction.opcode != "constant" || !instruction.literal || !location.shape_index.empty()) {
    throw Refusal(Reason::kMalformed, "the program lacks the elements of a constant");
  }
  std::string bytes = read_literal(*instruction.literal, read_shape(instruction.shape));
  if (bytes.size() != allocation.size_bytes) {
    throw Refusal(Reason::kMalformed, "a constant of " + std::to_string(bytes.size()) +
                                          " bytes has a buffer of " +
                                          std::to_string(allocation.size_bytes));
  }
  return bytes;
}

void check_shapes(const std::vector<Shape>& shapes, const std::vector<std::size_t>& expected,
                  const std::string& side) {
  if (shapes.size() != expected.size()) {
    throw Refusal(Reason::kSignature, "the kernels have " + counted(shapes.size(), side) +
                                          ", the program " + std::to_string(expected.size()));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].size_bytes != expected[i]) {
      throw Refusal(Reason::kSignature, side + " " + std::to_string(i) + " has " +
                                            std::to_string(shapes[i].size_bytes) +
                                            " bytes for the kernels and " +
                                            std::to_string(expected[i]) + " for the program");
    }
  }
}

// Fills Buffers from XLA's allocations, in order.
class BufferReader {
 public:
  BufferReader(const BufferAssignment& assignment, const HloModule& module,
               const Expected& expected)
      : assignment_(assignment), module_(module), expected_(expected) {}

  Buffers read() {
    check_shapes(module_.input_shapes(), expected_.input_bytes, "input");
    check_shapes(module_.output_shapes(), expected_.output_bytes, "output");
    find_outputs();
    std::vector<std::optional<std::size_t>> inputs(expected_.input_bytes.size());
    for (std::size_t i = 0; i < assignment_.allocations().size(); ++i) {
      add(i, inputs);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) {
        throw Refusal(Reason::kBufferLayout, "input " + std::to_string(i) + " has no buffer");
      }
      buffers_.inputs.push_back(*inputs[i]);
    }
    for (const std::size_t number : output_allocations_) {
      buffers_.outputs.push_back(*buffers_.indices[number]);
    }
    return std::move(buffers_);
  }

 private:
  // Finds which of XLA's allocations holds which output.
  void find_outputs() {
    output_numbers_.resize(assignment_.allocations().size());
    const bool is_tuple = read_shape(module_.entry_root().shape).is_tuple();
    for (std::size_t i = 0; i < expected_.output_bytes.size(); ++i) {
      Location location{module_.entry_root().id, {}};
      if (is_tuple) {
        location.shape_index.push_back(i);
      }
      const BufferSlice slice =
          find_slice(assignment_, module_, std::move(location), output_name(i));
      const BufferAssignment::Allocation& allocation = assignment_.allocations()[slice.allocation];
      if (slice.size_bytes != expected_.output_bytes[i] ||
          slice.size_bytes != allocation.size_bytes) {
        throw Refusal(Reason::kBufferLayout,
                      output_name(i) + " shares its buffer with other values");
      }
      if (!allocation.is_live_out || allocation.is_constant || allocation.is_tuple ||
          allocation.is_thread_local) {
        throw Refusal(Reason::kBufferLayout, output_name(i) + " has no buffer of its own");
      }
      if (output_numbers_[slice.allocation]) {
        throw Refusal(Reason::kBufferLayout,
                      output_name(i) + " shares its buffer with another output");
      }
      output_numbers_[slice.allocation] = i;
      output_allocations_.push_back(slice.allocation);
    }
  }

  void add(std::size_t number, std::vector<std::optional<std::size_t>>& inputs) {
    const BufferAssignment::Allocation& source = assignment_.allocations()[number];
    buffers_.indices.emplace_back();
    if (source.is_thread_local) {
      return;  // scratch memory inside kernels
    }
    if (source.size_bytes > kMaxArrayBytes) {
      throw Refusal(Reason::kTooLarge, "the program uses a buffer of " +
                                           std::to_string(source.size_bytes) + " bytes; above " +
                                           std::to_string(kMaxArrayBytes) +
                                           ", calling it directly would not help");
    }
    Allocation allocation{.size_bytes = static_cast<std::size_t>(source.size_bytes)};
    if (source.is_input) {
      check_input(source, inputs);
      allocation.kind = Allocation::Kind::kInput;
      allocation.number = static_cast<std::size_t>(source.input_number);
      inputs[allocation.number] = buffers_.allocations.size();
    }
    if (output_numbers_[number]) {
      if (source.is_input) {
        push(allocation);
        allocation.copied_input = allocation.number;
      }
      allocation.kind = Allocation::Kind::kOutput;
      allocation.number = *output_numbers_[number];
    } else if (source.is_constant) {
      allocation.kind = Allocation::Kind::kConstant;
      allocation.bytes = read_constant(assignment_, module_, source);
    } else if (source.is_live_out && !source.is_tuple) {
      throw Refusal(Reason::kBufferLayout,
                    "the program has a buffer for an output that it does not return");
    }
    buffers_.indices.back() = buffers_.allocations.size();
    push(std::move(allocation));
  }

  void check_input(const BufferAssignment::Allocation& source,
                   const std::vector<std::optional<std::size_t>>& inputs) const {
    if (source.input_number >= inputs.size() || inputs[source.input_number]) {
      throw Refusal(Reason::kMalformed, "the buffers of the inputs are not numbered consecutively");
    }
    if (source.size_bytes != expected_.input_bytes[source.input_number] || source.is_constant ||
        source.is_tuple || source.is_live_out != source.is_aliased) {
      throw Refusal(Reason::kBufferLayout, "the buffer of input " +
                                               std::to_string(source.input_number) +
                                               " is not the buffer of one array");
    }
  }

  void push(Allocation allocation) {
    total_bytes_ += allocation.size_bytes;
    if (total_bytes_ > kMaxProgramBytes) {
      throw Refusal(Reason::kTooLarge, "the program uses more than " +
                                           std::to_string(kMaxProgramBytes) +
                                           " bytes, so calling it directly would not help");
    }
    buffers_.allocations.push_back(std::move(allocation));
  }

  const BufferAssignment& assignment_;
  const HloModule& module_;
  const Expected& expected_;
  Buffers buffers_;
  std::vector<std::optional<std::size_t>> output_numbers_;  // by XLA's allocation
  std::vector<std::size_t> output_allocations_;             // by output
  std::size_t total_bytes_ = 0;
};

}  // namespace

Slice Buffers::slice(std::uint64_t number, std::uint64_t offset, std::uint64_t size_bytes) const {
  if (number >= indices.size() || !indices[number]) {
    throw Refusal(
        Reason::kMalformed,
        "a step uses memory that the program does not have, allocation " + std::to_string(number));
  }
  const std::size_t index = *indices[number];
  const std::size_t whole_bytes = allocations[index].size_bytes;
  if (offset > whole_bytes || size_bytes > whole_bytes - offset) {
    throw Refusal(Reason::kMalformed, "a step uses " + std::to_string(size_bytes) +
                                          " bytes at offset " + std::to_string(offset) +
                                          " of an allocation of " + std::to_string(whole_bytes));
  }
  return {index, static_cast<std::size_t>(offset), static_cast<std::size_t>(size_bytes)};
}

Buffers read_buffers(const BufferAssignment& assignment, const HloModule& module,
                     const Expected& expected) {
  return BufferReader(assignment, module, expected).read();
}

}  // namespace cyxla::direct
