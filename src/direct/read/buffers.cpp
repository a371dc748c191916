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
// Values that may pass on one output, far above what a program has.
constexpr std::size_t kMaxPassedOn = 4096;
constexpr std::size_t kMaxTupleDepth = 4;

std::string output_name(std::size_t number) { return "output " + std::to_string(number); }

// The values that `location` is, where its instruction only passes them on.
std::vector<Location> origins(const HloModule& module, const Location& location) {
  const Instruction& instruction = module.instruction(location.instruction);
  const std::vector<std::uint64_t>& index = location.shape_index;
  const auto operand = [&](std::uint64_t number) {
    if (number >= instruction.operands.size()) {
      throw Refusal("HLO instruction " + std::to_string(instruction.id) + " lacks an operand");
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

// The place of an output, found through the instructions that pass it on to the root.
Place find_place(const BufferAssignment& assignment, const HloModule& module, Location output,
                 const std::string& name) {
  std::optional<Place> place;
  std::set<Location> seen{output};
  std::vector<Location> pending{std::move(output)};
  while (!pending.empty()) {
    const Location location = std::move(pending.back());
    pending.pop_back();
    if (const auto found = assignment.place(location)) {
      if (place && *place != *found) {
        throw Refusal(name + " lies in several places");
      }
      place = found;
      continue;
    }
    std::vector<Location> passed_on = origins(module, location);
    if (passed_on.empty()) {
      throw Refusal("the place of " + name + " in memory is not known");
    }
    for (Location& origin : passed_on) {
      if (seen.insert(origin).second) {
        pending.push_back(std::move(origin));
      }
    }
    if (seen.size() > kMaxPassedOn) {
      throw Refusal("the place of " + name + " in memory is not found");
    }
  }
  if (!place) {
    throw Refusal("the place of " + name + " in memory is not known");
  }
  return *place;
}

std::string read_constant(const BufferAssignment& assignment, const HloModule& module,
                          const BufferAssignment::Allocation& allocation) {
  if (allocation.buffers.size() != 1) {
    throw Refusal("the memory of a constant holds " + std::to_string(allocation.buffers.size()) +
                  " values");
  }
  const Location& location = assignment.definition(allocation.buffers.front());
  const Instruction& instruction = module.instruction(location.instruction);
  if (instruction.opcode != "constant" || !instruction.literal || !location.shape_index.empty()) {
    throw Refusal("the elements of a constant are not in the program");
  }
  std::string bytes = read_literal(*instruction.literal, read_shape(instruction.shape));
  if (bytes.size() != allocation.size_bytes) {
    throw Refusal("a constant of " + std::to_string(bytes.size()) + " bytes has memory for " +
                  std::to_string(allocation.size_bytes));
  }
  return bytes;
}

void check_shapes(const std::vector<Shape>& shapes, const std::vector<std::size_t>& expected,
                  const std::string& side) {
  if (shapes.size() != expected.size()) {
    throw Refusal("the kernels have " + counted(shapes.size(), side) + ", the program " +
                  std::to_string(expected.size()));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].size_bytes != expected[i]) {
      throw Refusal(side + " " + std::to_string(i) + " has " +
                    std::to_string(shapes[i].size_bytes) + " bytes for the kernels and " +
                    std::to_string(expected[i]) + " for the program");
    }
  }
}

// Fills Buffers from XLA's allocations, one after the other.
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
        throw Refusal("input " + std::to_string(i) + " has no memory");
      }
      buffers_.inputs.push_back(*inputs[i]);
    }
    for (const std::size_t number : output_allocations_) {
      buffers_.outputs.push_back(*buffers_.indices[number]);
    }
    return std::move(buffers_);
  }

 private:
  // Which output each of XLA's allocations is, if any.
  void find_outputs() {
    output_numbers_.resize(assignment_.allocations().size());
    const bool is_tuple = read_shape(module_.entry_root().shape).is_tuple();
    for (std::size_t i = 0; i < expected_.output_bytes.size(); ++i) {
      Location location{module_.entry_root().id, {}};
      if (is_tuple) {
        location.shape_index.push_back(i);
      }
      const Place place = find_place(assignment_, module_, std::move(location), output_name(i));
      const BufferAssignment::Allocation& allocation = assignment_.allocations()[place.allocation];
      if (place.size_bytes != expected_.output_bytes[i] ||
          place.size_bytes != allocation.size_bytes) {
        throw Refusal(output_name(i) + " shares its memory with other values");
      }
      if (!allocation.is_live_out || allocation.is_constant || allocation.is_tuple ||
          allocation.is_thread_local) {
        throw Refusal(output_name(i) + " has no memory of its own");
      }
      if (output_numbers_[place.allocation]) {
        throw Refusal(output_name(i) + " shares its memory with another output");
      }
      output_numbers_[place.allocation] = i;
      output_allocations_.push_back(place.allocation);
    }
  }

  void add(std::size_t number, std::vector<std::optional<std::size_t>>& inputs) {
    const BufferAssignment::Allocation& source = assignment_.allocations()[number];
    buffers_.indices.emplace_back();
    if (source.is_thread_local) {
      return;  // scratch memory inside kernels
    }
    if (source.size_bytes > kMaxArrayBytes) {
      throw Refusal("the program uses a buffer of " + std::to_string(source.size_bytes) +
                    " bytes; more than " + std::to_string(kMaxArrayBytes) + " gain nothing");
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
      throw Refusal("the program has memory for an output that it does not return");
    }
    buffers_.indices.back() = buffers_.allocations.size();
    push(std::move(allocation));
  }

  void check_input(const BufferAssignment::Allocation& source,
                   const std::vector<std::optional<std::size_t>>& inputs) const {
    if (source.input_number >= inputs.size() || inputs[source.input_number]) {
      throw Refusal("the inputs' memory is not numbered one by one");
    }
    if (source.size_bytes != expected_.input_bytes[source.input_number] || source.is_constant ||
        source.is_tuple || source.is_live_out != source.is_aliased) {
      throw Refusal("the memory of input " + std::to_string(source.input_number) +
                    " is not that of an array");
    }
  }

  void push(Allocation allocation) {
    total_bytes_ += allocation.size_bytes;
    if (total_bytes_ > kMaxProgramBytes) {
      throw Refusal("the program uses more than " + std::to_string(kMaxProgramBytes) +
                    " bytes; such a program gains nothing");
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
    throw Refusal("a step uses memory that the program does not have, allocation " +
                  std::to_string(number));
  }
  const std::size_t index = *indices[number];
  const std::size_t whole_bytes = allocations[index].size_bytes;
  if (offset > whole_bytes || size_bytes > whole_bytes - offset) {
    throw Refusal("a step uses " + std::to_string(size_bytes) + " bytes at offset " +
                  std::to_string(offset) + " of an allocation of " + std::to_string(whole_bytes));
  }
  return {index, static_cast<std::size_t>(offset), static_cast<std::size_t>(size_bytes)};
}

Buffers read_buffers(const BufferAssignment& assignment, const HloModule& module,
                     const Expected& expected) {
  return BufferReader(assignment, module, expected).read();
}

}  // namespace cyxla::direct
