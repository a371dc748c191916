// SPDX-License-Identifier: Apache-2.0
#include "direct/run/runner.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <variant>

#include "direct/run/copy_bytes.h"

namespace cyxla::direct {
namespace {

constexpr KernelDimensions kOneWorkgroup = {1, 1, 1};
constexpr KernelDimensions kFirstWorkgroup = {0, 0, 0};

void copy_elements(const CopyStep::Dimension* dimension, const CopyStep::Dimension* end,
                   std::size_t element_bytes, std::byte* destination,
                   const std::byte* source) noexcept {
  if (dimension == end) {
    copy_bytes(destination, source, element_bytes);
    return;
  }
  for (std::size_t i = 0; i < dimension->size; ++i) {
    copy_elements(dimension + 1, end, element_bytes,
                  destination + i * dimension->destination_stride_bytes,
                  source + i * dimension->source_stride_bytes);
  }
}

// A kernel that counts its calls.
const void* count_run(const KernelCallFrame* frame) {
  ++*static_cast<std::uint64_t*>(frame->arguments[0].data);
  return nullptr;
}

}  // namespace

Runner::Runner(const Executable& executable, Counting counting)
    : is_counting_(counting == Counting::kOn) {
  program_ = add(executable.plan().steps, executable);
  finish(executable.plan().allocations.size());
}

Runner::Block Runner::add(const Steps& steps, const Executable& executable) {
  // The steps of a block are contiguous in operations_, so inner blocks are added first.
  std::vector<Operation> block;
  if (is_counting_) {
    block.push_back(add_count(steps));
  }
  for (const Step& step : steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step.what)) {
      if (block.empty() || block.back().kind != Kind::kCalls) {
        const auto begin = static_cast<std::uint32_t>(calls_.size());
        block.push_back({Kind::kCalls, begin, begin});
      }
      add_call(*kernel, executable);
      block.back().end = static_cast<std::uint32_t>(calls_.size());
    } else if (const auto* copy = std::get_if<CopyStep>(&step.what)) {
      block.push_back(add(*copy));
    } else if (const auto* loop = std::get_if<WhileStep>(&step.what)) {
      block.push_back(add(*loop, executable));
    } else {
      block.push_back(add(std::get<ConditionalStep>(step.what), executable));
    }
  }
  const auto begin = static_cast<std::uint32_t>(operations_.size());
  operations_.insert(operations_.end(), block.begin(), block.end());
  return {begin, static_cast<std::uint32_t>(operations_.size())};
}

void Runner::add_call(const KernelStep& step, const Executable& executable) {
  // finish() sets the address of the arguments: arguments_ may still grow.
  calls_.push_back({executable.kernel(step.kernel),
                    {&kOneWorkgroup, &kFirstWorkgroup, step.slices.size(), nullptr},
                    arguments_.size()});
  for (const Slice& slice : step.slices) {
    add_argument(slice);
  }
}

Runner::Operation Runner::add_count(const Steps& block) {
  const auto begin = static_cast<std::uint32_t>(calls_.size());
  calls_.push_back(
      {&count_run, {&kOneWorkgroup, &kFirstWorkgroup, 1, &counts_[&block].argument}, 0});
  return {Kind::kCalls, begin, begin + 1};
}

bool Runner::has_run(const Steps& block) const noexcept {
  const auto count = counts_.find(&block);
  return count != counts_.end() && count->second.runs > 0;
}

Runner::Operation Runner::add(const CopyStep& step) {
  Copy copy;
  copy.source = add_argument(step.source);
  copy.destination = add_argument(step.destination);
  copy.element_bytes = step.element_bytes;
  copy.dimensions = step.dimensions;
  copies_.push_back(std::move(copy));
  return {Kind::kCopy, static_cast<std::uint32_t>(copies_.size() - 1), 0};
}

Runner::Operation Runner::add(const WhileStep& step, const Executable& executable) {
  Loop loop;
  if (step.trip_count) {
    loop.is_counted = true;
    loop.trip_count = *step.trip_count;
  } else {
    loop.condition = add(step.condition, executable);
    loop.condition_result = add_argument(step.condition_result);
  }
  loop.body = add(step.body, executable);
  loops_.push_back(loop);
  return {Kind::kLoop, static_cast<std::uint32_t>(loops_.size() - 1), 0};
}

Runner::Operation Runner::add(const ConditionalStep& step, const Executable& executable) {
  Branch branch;
  branch.index = add_argument(step.index);
  branch.is_predicate = step.is_predicate;
  for (const Steps& steps : step.branches) {
    branch.branches.push_back(add(steps, executable));
  }
  branches_.push_back(std::move(branch));
  return {Kind::kBranch, static_cast<std::uint32_t>(branches_.size() - 1), 0};
}

std::uint32_t Runner::add_argument(const Slice& slice) {
  slices_.push_back(slice);
  arguments_.push_back({nullptr, slice.size_bytes});
  return static_cast<std::uint32_t>(arguments_.size() - 1);
}

void Runner::finish(std::size_t num_allocations) {
  for (Call& call : calls_) {
    if (call.frame.arguments == nullptr) {
      call.frame.arguments = arguments_.data() + call.first_argument;
    }
  }
  std::vector<std::size_t> order(slices_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return slices_[a].allocation < slices_[b].allocation;
  });
  first_slot_.assign(num_allocations + 1, 0);
  for (const std::size_t argument : order) {
    slots_.push_back({&arguments_[argument], slices_[argument].offset});
    ++first_slot_[slices_[argument].allocation + 1];
  }
  std::partial_sum(first_slot_.begin(), first_slot_.end(), first_slot_.begin());
  slices_ = {};
}

bool Runner::run(Block block) noexcept {
  for (std::uint32_t i = block.begin; i < block.end; ++i) {
    const Operation operation = operations_[i];
    switch (operation.kind) {
      case Kind::kCalls:
        if (!run_calls(calls_.data() + operation.begin, calls_.data() + operation.end)) {
          return false;
        }
        break;
      case Kind::kCopy:
        run(copies_[operation.begin]);
        break;
      case Kind::kLoop:
        if (!run(loops_[operation.begin])) {
          return false;
        }
        break;
      case Kind::kBranch:
        if (!run(chosen(branches_[operation.begin]))) {
          return false;
        }
        break;
    }
  }
  return true;
}

// The range is passed as pointers, because members would be read again after every call.
bool Runner::run_calls(const Call* begin, const Call* end) noexcept {
  for (const Call* call = begin; call != end; ++call) {
    if (call->function(&call->frame) != nullptr) {
      return false;
    }
  }
  return true;
}

bool Runner::run(const Loop& loop) noexcept {
  if (loop.is_counted) {
    for (std::uint64_t i = 0; i < loop.trip_count; ++i) {
      if (!run(loop.body)) {
        return false;
      }
    }
    return true;
  }
  for (;;) {
    if (!run(loop.condition)) {
      return false;
    }
    if (*static_cast<const std::uint8_t*>(arguments_[loop.condition_result].data) == 0) {
      return true;
    }
    if (trips_left_ != kAnyNumber && trips_left_-- == 0) {
      trips_left_ = 0;
      return false;
    }
    if (!run(loop.body)) {
      return false;
    }
  }
}

void Runner::run(const Copy& copy) noexcept {
  const KernelArgument& source = arguments_[copy.source];
  const KernelArgument& destination = arguments_[copy.destination];
  if (copy.dimensions.empty()) {
    copy_bytes(destination.data, source.data, source.size_bytes);
    return;
  }
  copy_elements(copy.dimensions.data(), copy.dimensions.data() + copy.dimensions.size(),
                copy.element_bytes, static_cast<std::byte*>(destination.data),
                static_cast<const std::byte*>(source.data));
}

const Runner::Block& Runner::chosen(const Branch& branch) const noexcept {
  const void* index = arguments_[branch.index].data;
  if (branch.is_predicate) {
    return branch.branches[*static_cast<const std::uint8_t*>(index) != 0 ? 0 : 1];
  }
  std::int32_t number = 0;
  std::memcpy(&number, index, sizeof(number));
  const auto position = static_cast<std::size_t>(number);
  return number < 0 || position >= branch.branches.size() ? branch.branches.back()
                                                          : branch.branches[position];
}

}  // namespace cyxla::direct
