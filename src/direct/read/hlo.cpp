// SPDX-License-Identifier: Apache-2.0
#include "direct/read/hlo.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "direct/read/tables.h"
#include "direct/read/work.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

Instruction read_instruction(std::string_view bytes) {
  const Message<proto::kHloInstruction> message(bytes, "an HLO instruction");
  Instruction instruction{.id = message.number("id"),
                          .opcode = message.bytes("opcode"),
                          .shape = message.bytes("shape"),
                          .backend_config = message.bytes("backend_config"),
                          .window = message.bytes("window"),
                          .dot_dimensions = message.bytes("dot_dimension_numbers"),
                          .parameter_number = message.number("parameter_number"),
                          .tuple_index = message.number("tuple_index"),
                          .operands = message.numbers("operand_ids"),
                          .called_computations = message.numbers("called_computation_ids")};
  if (message.has("literal")) {
    instruction.literal = message.bytes("literal");
  }
  return instruction;
}

struct ProgramShape {
  std::vector<Shape> inputs;
  std::vector<Shape> outputs;
};

ProgramShape read_program_shape(std::string_view bytes) {
  const Message<proto::kProgramShape> message(bytes, "a program shape");
  ProgramShape shape;
  message.for_each("parameters",
                   [&](std::string_view one) { shape.inputs.push_back(read_shape(one)); });
  if (message.has("result")) {
    shape.outputs = read_shape(message.bytes("result")).leaves();
  }
  return shape;
}

// Checks that the instructions and the module's program shape agree, and that callers' arrays fit.
std::vector<Shape> checked(std::vector<Shape> shapes, const std::vector<Shape>& declared,
                           const char* side) {
  if (shapes != declared) {
    throw Refusal(Reason::kMalformed,
                  std::string("the program contradicts itself about the layout of its ") + side);
  }
  for (const Shape& shape : shapes) {
    if (!shape.is_row_major()) {
      throw Refusal(Reason::kBufferLayout,
                    std::string("an array of its ") + side + " is a tuple or not row-major");
    }
  }
  return shapes;
}

}  // namespace

HloModule::HloModule(std::string_view bytes) {
  const Message<proto::kHloModule> message(bytes, "the HLO module");
  program_shape_ = message.bytes("host_program_shape");
  entry_computation_ = message.number("entry_computation_id");
  message.for_each("computations", [this](std::string_view one) { read_computation(one); });
}

void HloModule::read_computation(std::string_view bytes) {
  const Message<proto::kHloComputation> message(bytes, "an HLO computation");
  Computation computation{.root = message.number("root_id")};
  message.for_each("instructions", [&](std::string_view one) {
    Instruction instruction = read_instruction(one);
    const std::uint64_t id = instruction.id;
    if (instruction.opcode == "parameter") {
      computation.parameters.push_back(id);
    }
    const std::uint64_t trip_count =
        instruction.opcode == "while" ? read_trip_count(instruction) : 0;
    computation.num_trips += trips_of(instruction, trip_count);
    computation.work += work_of(instruction, trip_count);
    if (!instructions_.emplace(id, std::move(instruction)).second) {
      throw Refusal(Reason::kMalformed,
                    "two HLO instructions have the number " + std::to_string(id));
    }
  });
  const std::uint64_t id = message.number("id");
  if (!computations_.emplace(id, std::move(computation)).second) {
    throw Refusal(Reason::kMalformed, "two HLO computations have the number " + std::to_string(id));
  }
}

// XLA writes a computation after those that it calls.
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

// XLA writes operands before their users, and callees before their callers.
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

// Returns 0 for an unknown trip count.
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
    throw Refusal(Reason::kMalformed, "the trip count of a loop is not a number");
  }
  if (trip_count > kMaxTripCount) {
    throw Refusal(Reason::kTooLarge, "a loop runs " + std::to_string(trip_count) +
                                         " times, so calling it directly would not help");
  }
  return trip_count;
}

const Instruction& HloModule::instruction(std::uint64_t id) const {
  const auto found = instructions_.find(id);
  if (found == instructions_.end()) {
    throw Refusal(Reason::kMalformed,
                  "the program has no HLO instruction with the number " + std::to_string(id));
  }
  return found->second;
}

const HloModule::Computation& HloModule::computation(std::uint64_t id) const {
  const auto found = computations_.find(id);
  if (found == computations_.end()) {
    throw Refusal(Reason::kMalformed,
                  "the program has no HLO computation with the number " + std::to_string(id));
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
      throw Refusal(Reason::kMalformed, "the inputs of the program are not numbered consecutively");
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
