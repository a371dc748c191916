// SPDX-License-Identifier: Apache-2.0
#include "direct/read/hlo.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "direct/read/message.h"
#include "direct/read/work.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

Instruction read_instruction(std::string_view bytes) {
  Instruction instruction;
  Message message(bytes, "an HLO instruction");
  while (message.next()) {
    switch (message.field()) {
      case 2:
        instruction.opcode = message.bytes();
        break;
      case 3:
        instruction.shape = message.bytes();
        break;
      case 8:
        instruction.literal = message.bytes();
        break;
      case 9:
        instruction.parameter_number = message.number();
        break;
      case 13:
        instruction.tuple_index = message.number();
        break;
      case 35:
        instruction.id = message.number();
        break;
      case 36:
        message.repeated_numbers(instruction.operands);
        break;
      case 38:
        message.repeated_numbers(instruction.called_computations);
        break;
      case 43:
        instruction.backend_config = message.bytes();
        break;
      case 15:
        instruction.window = message.bytes();
        break;
      case 30:
        instruction.dot_dimensions = message.bytes();
        break;
      // What the instruction computes, which its kernel holds: dimensions and slices, the dimension
      // numbers of convolutions, gathers and scatters, comparisons, precision, FFT, sort and
      // random-number settings, custom calls.
      case 11:  // fusion_kind
      case 16:
      case 17:
      case 21:
      case 28:
      case 33:
      case 48:
      case 51:
      case 57:
      case 59:
      case 62:
      case 63:
      case 72:
      case 74:
      case 91:
      case 102:  // order of a comparison
        message.ignore_bytes();
        break;
      case 14:
      case 20:
      case 32:
      case 34:
        message.ignore_repeated_numbers();
        break;
      case 18:
      case 19:
      case 23:
      case 31:
      case 50:
      case 56:
      case 58:
      case 60:
      case 66:
      case 67:
      case 69:
      case 70:
      case 75:
      case 77:
      case 81:
      case 85:
        message.ignore_number();
        break;
      // Names, metadata, frontend attributes, statistics, the origin of values, and the order that
      // the step list already has.
      case 1:
      case 7:
      case 37:
      case 68:
      case 82:
      case 88:
        message.ignore_bytes();
        break;
      // Settings of convolutions that no plugin has used yet.
      case 98:
      case 101:
        if (!message.bytes().empty()) {
          message.refuse_value();
        }
        break;
      default:
        message.refuse_unknown();
    }
  }
  return instruction;
}

struct ProgramShape {
  std::vector<Shape> inputs;
  std::vector<Shape> outputs;
};

ProgramShape read_program_shape(std::string_view bytes) {
  ProgramShape shape;
  Message message(bytes, "a program shape");
  while (message.next()) {
    switch (message.field()) {
      case 1:  // parameters
        shape.inputs.push_back(read_shape(message.repeated_bytes()));
        break;
      case 2:  // result
        shape.outputs = read_shape(message.bytes()).leaves();
        break;
      case 3:  // parameter_names
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  return shape;
}

// The caller's arrays are what the module's program shape and its instructions both say.
std::vector<Shape> checked(std::vector<Shape> shapes, const std::vector<Shape>& declared,
                           const char* side) {
  if (shapes != declared) {
    throw Refusal(std::string("the program contradicts itself about the layout of its ") + side);
  }
  for (const Shape& shape : shapes) {
    if (!shape.is_row_major()) {
      throw Refusal(std::string("an array of its ") + side + " is a tuple or not row-major");
    }
  }
  return shapes;
}

}  // namespace

HloModule::HloModule(std::string_view bytes) {
  Message message(bytes, "the HLO module");
  while (message.next()) {
    switch (message.field()) {
      case 3:  // computations
        read_computation(message.repeated_bytes());
        break;
      case 4:
        program_shape_ = message.bytes();
        break;
      case 6:
        entry_computation_ = message.number();
        break;
      case 5:  // id
        message.ignore_number();
        break;
      case 1:   // name
      case 2:   // entry_computation_name
      case 7:   // schedule: the step list has it
      case 8:   // input_output_alias: the buffer assignment has it
      case 15:  // device_assignment: one device
      case 17:  // stack_frame_index
      case 18:  // buffer_donor
      case 19:  // frontend_attributes
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
}

void HloModule::read_computation(std::string_view bytes) {
  Computation computation;
  std::uint64_t id = 0;
  Message message(bytes, "an HLO computation");
  while (message.next()) {
    switch (message.field()) {
      case 2: {  // instructions
        Instruction instruction = read_instruction(message.repeated_bytes());
        if (instruction.opcode == "parameter") {
          computation.parameters.push_back(instruction.id);
        }
        const std::uint64_t trip_count =
            instruction.opcode == "while" ? read_trip_count(instruction) : 0;
        computation.num_trips += trips_of(instruction, trip_count);
        computation.work += work_of(instruction, trip_count);
        const std::uint64_t instruction_id = instruction.id;
        if (!instructions_.emplace(instruction_id, std::move(instruction)).second) {
          throw Refusal("two HLO instructions have the number " + std::to_string(instruction_id));
        }
        break;
      }
      case 5:
        id = message.number();
        break;
      case 6:
        computation.root = message.number();
        break;
      case 7:  // is_fusion_computation
        message.ignore_number();
        break;
      case 1:  // name
      case 4:  // program_shape: the instructions have it
      case 8:  // execution_thread
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  if (!computations_.emplace(id, std::move(computation)).second) {
    throw Refusal("two HLO computations have the number " + std::to_string(id));
  }
}

// XLA puts a computation behind those that it calls.
double HloModule::trips_of(const Instruction& instruction, std::uint64_t trip_count) const {
  double inside = 0;
  for (const std::uint64_t id : instruction.called_computations) {
    const auto called = computations_.find(id);
    if (called == computations_.end()) {
      return std::numeric_limits<double>::infinity();
    }
    inside += called->second.num_trips;
  }
  if (instruction.opcode != "while") {
    return inside;
  }
  return trip_count == 0 ? 0 : static_cast<double>(trip_count) * (1 + inside);
}

// Operands stand before what uses them, as callees do.
double HloModule::work_of(const Instruction& instruction, std::uint64_t trip_count) const {
  std::vector<Extent> operands;
  for (const std::uint64_t id : instruction.operands) {
    const auto found = instructions_.find(id);
    operands.push_back(found == instructions_.end() ? Extent{} : read_extent(found->second.shape));
  }
  std::vector<double> called;
  for (const std::uint64_t id : instruction.called_computations) {
    const auto found = computations_.find(id);
    called.push_back(found == computations_.end() ? std::numeric_limits<double>::infinity()
                                                  : found->second.work);
  }
  return direct::work_of(
      instruction, {.operands = operands,
                    .called_work = called,
                    .trip_count = static_cast<double>(std::max<std::uint64_t>(trip_count, 1))});
}

// 0 for a loop of unknown length.
std::uint64_t HloModule::read_trip_count(const Instruction& loop) {
  constexpr std::string_view kTripCount = R"("known_trip_count":{"n":")";
  const std::size_t found = loop.backend_config.find(kTripCount);
  if (found == std::string_view::npos) {
    has_unbounded_loop_ = true;
    return 0;
  }
  const std::string_view number = loop.backend_config.substr(found + kTripCount.size());
  std::uint64_t trip_count = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), trip_count);
  if (parsed.ec != std::errc()) {
    throw Refusal("the length of a loop is not a number");
  }
  if (trip_count > kMaxTripCount) {
    throw Refusal("a loop runs " + std::to_string(trip_count) +
                  " times; so long a program gains nothing");
  }
  return trip_count;
}

const Instruction& HloModule::instruction(std::uint64_t id) const {
  const auto found = instructions_.find(id);
  if (found == instructions_.end()) {
    throw Refusal("there is no HLO instruction with the number " + std::to_string(id));
  }
  return found->second;
}

const HloModule::Computation& HloModule::computation(std::uint64_t id) const {
  const auto found = computations_.find(id);
  if (found == computations_.end()) {
    throw Refusal("there is no HLO computation with the number " + std::to_string(id));
  }
  return found->second;
}

const Instruction& HloModule::root(std::uint64_t computation_id) const {
  return instruction(computation(computation_id).root);
}

std::vector<Shape> HloModule::input_shapes() const {
  const std::vector<std::uint64_t>& parameters = computation(entry_computation_).parameters;
  std::vector<std::optional<Shape>> found(parameters.size());
  for (const std::uint64_t id : parameters) {
    const Instruction& parameter = instruction(id);
    if (parameter.parameter_number >= found.size() || found[parameter.parameter_number]) {
      throw Refusal("the inputs of the program are not numbered one by one");
    }
    found[parameter.parameter_number] = read_shape(parameter.shape);
  }
  std::vector<Shape> shapes;
  shapes.reserve(found.size());
  for (std::optional<Shape>& shape : found) {
    shapes.push_back(*std::move(shape));
  }
  return checked(std::move(shapes), read_program_shape(program_shape_).inputs, "inputs");
}

std::vector<Shape> HloModule::output_shapes() const {
  return checked(read_shape(entry_root().shape).leaves(),
                 read_program_shape(program_shape_).outputs, "outputs");
}

}  // namespace cyxla::direct
