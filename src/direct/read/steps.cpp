// SPDX-License-Identifier: Apache-2.0
#include "direct/read/steps.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "direct/read/copy_step.h"
#include "direct/read/hlo.h"
#include "direct/read/slice_reader.h"
#include "direct/read/step_kind.h"
#include "direct/read/tables.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

// Programs for which a direct call saves time have far fewer.
constexpr std::size_t kMaxSteps = 4096;
// The alignment of the memory in a Context.
constexpr std::uint64_t kMaxAlignment = 64;

std::optional<std::uint64_t> read_optional(std::string_view bytes) {
  const Message<proto::kInt64Optional> message(bytes, "an optional number");
  return message.flag("contains_value") ? std::optional(message.number("value")) : std::nullopt;
}

// The plugin runs several work groups on its threads.
void check_work_groups(std::string_view bytes) {
  const Message<proto::kNumWorkGroups> groups(bytes, "the work groups of a kernel");
  if (groups.number("x") != 1 || groups.number("y") != 1 || groups.number("z") != 1) {
    throw Refusal(Reason::kUnsupportedStep,
                  "a kernel has several work groups, which the plugin runs in parallel");
  }
}

void check_alignment(std::string_view bytes) {
  const std::optional<std::uint64_t> alignment = read_optional(bytes);
  if (alignment && (*alignment > kMaxAlignment || (*alignment & (*alignment - 1)) != 0)) {
    throw Refusal(Reason::kUnsupportedStep,
                  "a kernel needs memory aligned to " + std::to_string(*alignment) + " bytes");
  }
}

// The name of the HLO instruction in an InfoProto, for messages only; empty if it cannot be
// printed.
std::string instruction_name(std::string_view bytes) {
  constexpr std::size_t kMaxLength = 100;
  const Message<proto::kInfo> info(bytes, Lenient());
  const std::string_view name = info.bytes("op_name");
  const bool is_printable =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
  return std::string(is_printable && name.size() <= kMaxLength ? name : "");
}

class StepReader {
 public:
  StepReader(const Buffers& buffers, const std::set<std::string_view>& symbols, Plan& plan)
      : buffers_(buffers), symbols_(symbols), plan_(plan) {}

  Steps read_sequence(std::string_view bytes, std::size_t depth) {
    Steps steps;
    append_sequence(bytes, depth, steps);
    return steps;
  }

 private:
  void append_sequence(std::string_view bytes, std::size_t depth, Steps& steps) {
    if (depth > kMaxNesting) {
      throw Refusal(Reason::kTooLarge,
                    "steps are nested more than " + std::to_string(kMaxNesting) + " deep");
    }
    const Message<proto::kThunkSequence> sequence(bytes, "a step sequence");
    sequence.for_each("thunks", [&](std::string_view step) { append_step(step, depth, steps); });
  }

  void append_step(std::string_view bytes, std::size_t depth, Steps& steps) {
    const std::size_t number = ++count_;
    if (number > kMaxSteps) {
      throw Refusal(Reason::kTooLarge,
                    "the program has more than " + std::to_string(kMaxSteps) + " steps");
    }
    const StepMessage step = read_step_message(bytes, number);
    const char* const expected_name = direct_name(step.kind);
    if (expected_name == nullptr) {
      throw Refusal(Reason::kUnsupportedStep, "step " + std::to_string(number) + " is " +
                                                  plugin_step(step.kind) +
                                                  ", which only the plugin runs");
    }
    if (step.name != expected_name) {
      throw Refusal(Reason::kMalformed, "step " + std::to_string(number) + " is a " +
                                            expected_name + " step with the name of another kind");
    }
    append(step, depth, steps);
    if (step.kind == StepKind::kConditional || step.kind == StepKind::kWhile) {
      steps.back().number = number;
      steps.back().instruction = instruction_name(step.info);
    }
  }

  void append(const StepMessage& step, std::size_t depth, Steps& steps) {
    switch (step.kind) {
      case StepKind::kCall: {
        const Message<proto::kCallThunk> call(step.content, "a call step");
        append_sequence(call.bytes("called_sequence"), depth + 1, steps);
        break;
      }
      case StepKind::kConditional:
        steps.push_back({read_conditional(step.content, depth)});
        break;
      case StepKind::kWhile:
        steps.push_back({read_while(step.content, depth)});
        break;
      case StepKind::kKernel:
        steps.push_back({read_kernel(step.content)});
        break;
      default:
        if (auto copy = read_copy(step.content, buffers_)) {
          steps.push_back({*std::move(copy)});
        }
    }
  }

  KernelStep read_kernel(std::string_view bytes) {
    const Message<proto::kKernelThunk> message(bytes, "a kernel step");
    check_work_groups(message.bytes("num_workgroups"));
    check_alignment(message.bytes("min_alignment"));
    KernelStep step{.kernel = kernel_index(message.bytes("kernel_name")), .slices = {}};
    const auto add_slice = [&](std::string_view slice) {
      step.slices.push_back(read_kernel_slice(slice, buffers_));
    };
    message.for_each("arguments_buffers", add_slice);
    message.for_each("results_buffers", add_slice);
    return step;
  }

  std::size_t kernel_index(std::string_view name) {
    const auto known = symbols_.find(name);
    if (known == symbols_.end()) {
      throw Refusal(Reason::kSymbol, "a step calls a kernel that was not compiled");
    }
    const auto [found, is_new] = kernels_.emplace(*known, plan_.kernels.size());
    if (is_new) {
      plan_.kernels.emplace_back(name);
    }
    return found->second;
  }

  WhileStep read_while(std::string_view bytes, std::size_t depth) {
    const Message<proto::kWhileThunk> message(bytes, "a while step");
    const TypedSlice result = read_slice(message.bytes("cond_buffer"), buffers_);
    if (!message.has("cond_sequence") || !message.has("body_sequence") ||
        result.element_type != ElementType::kPred || result.slice.size_bytes != 1) {
      throw Refusal(Reason::kMalformed, "a while step has no condition or no body");
    }
    WhileStep step{.condition = read_sequence(message.bytes("cond_sequence"), depth + 1),
                   .body = read_sequence(message.bytes("body_sequence"), depth + 1),
                   .condition_result = result.slice,
                   .trip_count = read_optional(message.bytes("trip_count"))};
    if (!step.trip_count) {
      plan_.has_unbounded_loop = true;
    } else if (*step.trip_count > kMaxTripCount) {
      throw Refusal(Reason::kTooLarge, "a loop runs " + std::to_string(*step.trip_count) +
                                           " times, so calling it directly would not help");
    }
    return step;
  }

  ConditionalStep read_conditional(std::string_view bytes, std::size_t depth) {
    const Message<proto::kConditionalThunk> message(bytes, "a conditional step");
    ConditionalStep step;
    message.for_each("branch_sequences", [&](std::string_view branch) {
      step.branches.push_back(read_sequence(branch, depth + 1));
    });
    if (!message.has("branch_index_buffer") || step.branches.empty()) {
      throw Refusal(Reason::kMalformed, "a conditional step has no index or no branches");
    }
    const TypedSlice index = read_slice(message.bytes("branch_index_buffer"), buffers_);
    step.index = index.slice;
    step.is_predicate = index.element_type == ElementType::kPred;
    const bool is_usable =
        step.is_predicate ? step.index.size_bytes == 1 && step.branches.size() == 2
                          : index.element_type == ElementType::kS32 && step.index.size_bytes == 4;
    if (!is_usable) {
      throw Refusal(Reason::kUnsupportedType, "a conditional step has an index of an unknown type");
    }
    return step;
  }

  const Buffers& buffers_;
  const std::set<std::string_view>& symbols_;
  Plan& plan_;
  std::unordered_map<std::string_view, std::size_t> kernels_;  // names are those of symbols_
  std::size_t count_ = 0;
};

}  // namespace

void read_steps(std::string_view bytes, const Buffers& buffers,
                const std::set<std::string_view>& symbols, Plan& plan) {
  plan.steps = StepReader(buffers, symbols, plan).read_sequence(bytes, 0);
}

}  // namespace cyxla::direct
