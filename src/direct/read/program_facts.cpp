// SPDX-License-Identifier: Apache-2.0
#include "direct/read/program_facts.h"

#include <algorithm>
#include <cstdint>

#include "base/wire.h"
#include "direct/read/compilation_result.h"
#include "direct/read/hlo.h"
#include "direct/read/step_kind.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

// Calls `visit` with each field of a message that holds bytes.
template <typename Visit>
void for_each_message(std::string_view bytes, Visit visit) {
  wire::Reader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->type == wire::Type::kBytes) {
      visit(field->field, field->bytes);
    }
  }
  if (reader.failed()) {
    throw Refusal("a step is malformed");
  }
}

class ObstacleReader {
 public:
  explicit ObstacleReader(std::vector<std::string>& obstacles) : obstacles_(obstacles) {}

  void read_sequence(std::string_view bytes, std::size_t depth) {
    if (depth > kMaxNesting) {
      add("steps nested deeply");
      return;
    }
    for_each_message(bytes, [&](std::uint32_t, std::string_view step) {
      for_each_message(step, [&](std::uint32_t field, std::string_view what) {
        if (field > 2) {  // not its name or info
          read_step(field, what, depth);
        }
      });
    });
  }

  void add(const char* obstacle) {
    if (std::find(obstacles_.begin(), obstacles_.end(), obstacle) == obstacles_.end()) {
      obstacles_.emplace_back(obstacle);
    }
  }

 private:
  void read_step(std::uint32_t kind, std::string_view bytes, std::size_t depth) {
    switch (kind) {
      case kXnnFusion:
      case kMatrixProduct:
      case kYnnFusion:
      case kWhile:  // the module tells of loops, inside of kernels too
      case kCopy:
        break;
      case kCall:
      case kConditional:
        for_each_message(bytes, [&](std::uint32_t field, std::string_view sequence) {
          if (field == 1) {
            read_sequence(sequence, depth + 1);
          }
        });
        break;
      case kKernel:
        for_each_message(bytes, [&](std::uint32_t field, std::string_view groups) {
          if (field == 2) {
            read_work_groups(groups);
          }
        });
        break;
      default:
        add(plugin_step(kind));
    }
  }

  void read_work_groups(std::string_view bytes) {
    wire::Reader reader(bytes);
    while (const auto field = reader.next()) {
      if (field->number != 1) {
        add("a kernel with several work groups");
      }
    }
  }

  std::vector<std::string>& obstacles_;
};

}  // namespace

ProgramFacts read_facts(std::string_view serialized) {
  const CompilationResult result = read_compilation_result(serialized);
  const HloModule module(result.module);
  ProgramFacts facts{.num_instructions = module.instructions().size(), .work = module.work()};
  ObstacleReader obstacles(facts.obstacles);
  obstacles.read_sequence(result.steps, 0);
  for (const auto& [id, instruction] : module.instructions()) {
    if (instruction.opcode == "while") {
      obstacles.add("a loop");
    }
    if (instruction.opcode == "dot" && instruction.operands.size() == 2) {
      facts.products.push_back(
          product_of(instruction, read_extent(module.instruction(instruction.operands[0]).shape),
                     read_extent(module.instruction(instruction.operands[1]).shape)));
    }
  }
  return facts;
}

}  // namespace cyxla::direct
