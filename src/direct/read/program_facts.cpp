// SPDX-License-Identifier: Apache-2.0
#include "direct/read/program_facts.h"

#include <set>

#include "direct/read/compilation_result.h"
#include "direct/read/hlo.h"
#include "direct/read/step_kind.h"
#include "direct/read/tables.h"

namespace cyxla::direct {
namespace {

// Collects the kinds of steps that keep a program off the direct route.
class ObstacleReader {
 public:
  void read_sequence(std::string_view bytes, std::size_t depth) {
    if (depth > kMaxNesting) {
      obstacles_.insert(StepKind::kCall);
      return;
    }
    const Message<proto::kThunkSequence> sequence(bytes, "a step sequence");
    sequence.for_each("thunks", [&](std::string_view step) {
      read_step(read_step_message(step, ++count_), depth);
    });
  }

  void add(StepKind kind) { obstacles_.insert(kind); }

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const StepKind kind : obstacles_) {
      texts.emplace_back(text(kind));
    }
    return texts;
  }

 private:
  static const char* text(StepKind kind) {
    switch (kind) {
      case StepKind::kCall:
        return "steps nested deeply";
      case StepKind::kWhile:
        return "a loop";
      case StepKind::kKernel:
        return "a kernel with several work groups";
      default:
        return plugin_step(kind);
    }
  }

  void read_step(const StepMessage& step, std::size_t depth) {
    switch (step.kind) {
      case StepKind::kXnnFusion:
      case StepKind::kDot:
      case StepKind::kYnnFusion:
      case StepKind::kWhile:  // the module has all loops, those inside kernels too
      case StepKind::kCopy:
        break;
      case StepKind::kCall: {
        const Message<proto::kCallThunk> call(step.content, "a call step");
        read_sequence(call.bytes("called_sequence"), depth + 1);
        break;
      }
      case StepKind::kConditional: {
        const Message<proto::kConditionalThunk> conditional(step.content, "a conditional step");
        conditional.for_each("branch_sequences",
                             [&](std::string_view branch) { read_sequence(branch, depth + 1); });
        break;
      }
      case StepKind::kKernel: {
        const Message<proto::kKernelThunk> kernel(step.content, "a kernel step");
        const Message<proto::kNumWorkGroups> groups(kernel.bytes("num_workgroups"),
                                                    "the work groups of a kernel");
        if (groups.number("x") > 1 || groups.number("y") > 1 || groups.number("z") > 1) {
          obstacles_.insert(StepKind::kKernel);
        }
        break;
      }
      default:
        obstacles_.insert(step.kind);
    }
  }

  std::set<StepKind> obstacles_;
  std::size_t count_ = 0;
};

}  // namespace

ProgramFacts read_facts(std::string_view serialized) {
  const CompilationResult result = read_compilation_result(serialized);
  const HloModule module(result.module);
  ProgramFacts facts{.num_instructions = module.instructions().size(), .work = module.work()};
  ObstacleReader obstacles;
  obstacles.read_sequence(result.steps, 0);
  for (const auto& [id, instruction] : module.instructions()) {
    if (instruction.opcode == "while") {
      obstacles.add(StepKind::kWhile);
    }
    if (instruction.opcode == "dot" && instruction.operands.size() == 2) {
      facts.products.push_back(
          product_of(instruction, read_extent(module.instruction(instruction.operands[0]).shape),
                     read_extent(module.instruction(instruction.operands[1]).shape)));
    }
  }
  facts.obstacles = obstacles.texts();
  return facts;
}

}  // namespace cyxla::direct
