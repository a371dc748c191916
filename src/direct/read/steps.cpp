// SPDX-License-Identifier: Apache-2.0
#include "direct/read/steps.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/wire.h"
#include "direct/read/copy_step.h"
#include "direct/read/hlo.h"
#include "direct/read/message.h"
#include "direct/read/slice_reader.h"
#include "direct/read/step_kind.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

// Far above what a program has that gains from a direct call.
constexpr std::size_t kMaxSteps = 4096;
// Contexts align their memory to this much.
constexpr std::uint64_t kMaxAlignment = 64;

struct Int64Optional {
  std::uint64_t value = 0;
  bool has_value = false;
};

Int64Optional read_optional(std::string_view bytes) {
  Int64Optional result;
  Message message(bytes, "an optional number");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        result.value = message.number();
        break;
      case 2:
        result.has_value = message.flag();
        break;
      default:
        message.refuse_unknown();
    }
  }
  return result;
}

// Refuses more than one work group: the kernel is large enough for the plugin's threads.
void check_work_groups(std::string_view bytes) {
  std::uint64_t groups[3] = {};
  Message message(bytes, "the work groups of a kernel");
  while (message.next()) {
    if (message.field() > 3) {
      message.refuse_unknown();
    }
    groups[message.field() - 1] = message.number();
  }
  for (const std::uint64_t count : groups) {
    if (count != 1) {
      throw Refusal("a kernel has several work groups, which the plugin runs in parallel");
    }
  }
}

void check_alignment(std::string_view bytes) {
  const Int64Optional alignment = read_optional(bytes);
  if (alignment.has_value &&
      (alignment.value > kMaxAlignment || (alignment.value & (alignment.value - 1)) != 0)) {
    throw Refusal("a kernel wants its memory aligned to " + std::to_string(alignment.value) +
                  " bytes");
  }
}

// The name of the HLO instruction in a ThunkInfoProto, which nothing but messages depends on; empty
// if it has none that can be printed.
std::string instruction_name(std::string_view info) {
  constexpr std::size_t kMaxLength = 100;
  std::string name;
  wire::for_each_bytes_field(info, 1, [&](std::string_view bytes) { name = bytes; });
  const bool is_printable =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
  return is_printable && name.size() <= kMaxLength ? name : "";
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
      throw Refusal("steps are nested more than " + std::to_string(kMaxNesting) + " deep");
    }
    Message message(bytes, "a step sequence");
    while (message.next()) {
      switch (message.field()) {
        case 1:  // thunks
          append_step(message.repeated_bytes(), depth, steps);
          break;
        default:  // resource users too: they order steps that only the plugin runs
          message.refuse_unknown();
      }
    }
  }

  void append_step(std::string_view bytes, std::size_t depth, Steps& steps) {
    const std::size_t number = ++count_;
    if (number > kMaxSteps) {
      throw Refusal("the program has more than " + std::to_string(kMaxSteps) + " steps");
    }
    std::string_view name;
    std::string_view info;
    std::uint32_t kind = 0;
    std::string_view what;
    Message message(bytes, "a step");
    while (message.next()) {
      switch (message.field()) {
        case 1:
          name = message.bytes();
          break;
        case 2:
          info = message.bytes();
          break;
        default:
          if (kind != 0) {
            throw Refusal("step " + std::to_string(number) + " is of several kinds");
          }
          kind = message.field();
          what = message.bytes();
      }
    }
    if (kind_name(kind) == nullptr) {
      throw Refusal("step " + std::to_string(number) + " is " + plugin_step(kind) +
                    ", which only the plugin runs");
    }
    if (name != kind_name(kind)) {
      throw Refusal("step " + std::to_string(number) + " is called something else than it is");
    }
    append(kind, what, depth, steps);
    if (kind == kConditional || kind == kWhile) {
      steps.back().number = number;
      steps.back().instruction = instruction_name(info);
    }
  }

  void append(std::uint32_t kind, std::string_view bytes, std::size_t depth, Steps& steps) {
    switch (kind) {
      case kCall:
        append_call(bytes, depth, steps);
        break;
      case kConditional:
        steps.push_back({read_conditional(bytes, depth)});
        break;
      case kWhile:
        steps.push_back({read_while(bytes, depth)});
        break;
      case kKernel:
        steps.push_back({read_kernel(bytes)});
        break;
      default:
        if (auto copy = read_copy(bytes, buffers_)) {
          steps.push_back({*std::move(copy)});
        }
    }
  }

  void append_call(std::string_view bytes, std::size_t depth, Steps& steps) {
    Message message(bytes, "a call step");
    while (message.next()) {
      if (message.field() != 1) {
        message.refuse_unknown();
      }
      append_sequence(message.bytes(), depth + 1, steps);
    }
  }

  KernelStep read_kernel(std::string_view bytes) {
    std::string_view name;
    std::vector<Slice> arguments;
    std::vector<Slice> results;
    bool has_work_groups = false;
    Message message(bytes, "a kernel step");
    while (message.next()) {
      switch (message.field()) {
        case 1:
          name = message.bytes();
          break;
        case 2:
          check_work_groups(message.bytes());
          has_work_groups = true;
          break;
        case 3:  // invariant_arguments: a promise to the compiler
          message.ignore_repeated_numbers();
          break;
        case 4:
          check_alignment(message.bytes());
          break;
        case 5:
          arguments.push_back(read_kernel_slice(message.repeated_bytes(), buffers_));
          break;
        case 6:
          results.push_back(read_kernel_slice(message.repeated_bytes(), buffers_));
          break;
        default:
          message.refuse_unknown();
      }
    }
    if (!has_work_groups) {
      throw Refusal("a kernel has no work groups");
    }
    KernelStep step{.kernel = kernel_index(name), .slices = std::move(arguments)};
    step.slices.insert(step.slices.end(), results.begin(), results.end());
    return step;
  }

  std::size_t kernel_index(std::string_view name) {
    const auto known = symbols_.find(name);
    if (known == symbols_.end()) {
      throw Refusal("a step calls a kernel that was not compiled");
    }
    const auto [found, is_new] = kernels_.emplace(*known, plan_.kernels.size());
    if (is_new) {
      plan_.kernels.emplace_back(name);
    }
    return found->second;
  }

  WhileStep read_while(std::string_view bytes, std::size_t depth) {
    WhileStep step;
    std::optional<TypedSlice> condition_result;
    bool has_condition = false;
    bool has_body = false;
    Int64Optional trip_count;
    Message message(bytes, "a while step");
    while (message.next()) {
      switch (message.field()) {
        case 1:
          step.condition = read_sequence(message.bytes(), depth + 1);
          has_condition = true;
          break;
        case 2:
          step.body = read_sequence(message.bytes(), depth + 1);
          has_body = true;
          break;
        case 3:
          trip_count = read_optional(message.bytes());
          break;
        case 4:
          condition_result = read_slice(message.bytes(), buffers_);
          break;
        default:
          message.refuse_unknown();
      }
    }
    if (!has_condition || !has_body || !condition_result ||
        condition_result->element_type != ElementType::kPred ||
        condition_result->slice.size_bytes != 1) {
      throw Refusal("a while step has no condition or no body");
    }
    step.condition_result = condition_result->slice;
    if (!trip_count.has_value) {
      plan_.has_unbounded_loop = true;
      return step;
    }
    if (trip_count.value > kMaxTripCount) {
      throw Refusal("a loop runs " + std::to_string(trip_count.value) +
                    " times; so long a program gains nothing");
    }
    step.trip_count = trip_count.value;
    return step;
  }

  ConditionalStep read_conditional(std::string_view bytes, std::size_t depth) {
    ConditionalStep step;
    std::optional<TypedSlice> index;
    Message message(bytes, "a conditional step");
    while (message.next()) {
      switch (message.field()) {
        case 1:
          step.branches.push_back(read_sequence(message.repeated_bytes(), depth + 1));
          break;
        case 2:
          index = read_slice(message.bytes(), buffers_);
          break;
        default:
          message.refuse_unknown();
      }
    }
    if (!index || step.branches.empty()) {
      throw Refusal("a conditional step has no index or no branches");
    }
    step.index = index->slice;
    step.is_predicate = index->element_type == ElementType::kPred;
    const bool is_usable =
        step.is_predicate ? step.index.size_bytes == 1 && step.branches.size() == 2
                          : index->element_type == ElementType::kS32 && step.index.size_bytes == 4;
    if (!is_usable) {
      throw Refusal("a conditional step has an index of an unknown type");
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
