// SPDX-License-Identifier: Apache-2.0
#include "direct/run/context.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/floating_point.h"
#include "direct/run/copy_bytes.h"

namespace cyxla::direct {
namespace {

std::uintptr_t address(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// The address range of several arrays, and whether each begins after the end of the one before.
struct MemoryRange {
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;
  bool is_ascending = true;

  void add(const void* pointer, std::size_t size_bytes) noexcept {
    if (size_bytes == 0) {
      return;
    }
    is_ascending = is_ascending && address(pointer) >= end;
    begin = std::min(begin, address(pointer));
    end = std::max(end, address(pointer) + size_bytes);
  }
  bool meets(const MemoryRange& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
};

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) noexcept {
  return address(a) < address(b) + b_bytes && address(b) < address(a) + a_bytes;
}

}  // namespace

Context::Context(const Executable& executable, Runner::Counting counting)
    : runner_(executable, counting),
      // No array of a caller has the address of this object, so the first run binds everything.
      last_inputs_(executable.num_inputs(), this),
      last_outputs_(executable.num_outputs(), this) {
  const Plan& plan = executable.plan();
  for (std::size_t i = 0; i < executable.num_inputs(); ++i) {
    Input input;
    input.allocation = plan.inputs[i];
    input.size_bytes = executable.input_bytes(i);
    input.is_donated = plan.allocations[input.allocation].kind != Allocation::Kind::kInput;
    inputs_.push_back(input);
  }
  for (std::size_t i = 0; i < executable.num_outputs(); ++i) {
    Output output;
    output.allocation = plan.outputs[i];
    output.size_bytes = executable.output_bytes(i);
    output.copied_input = plan.allocations[output.allocation].copied_input;
    has_copied_inputs_ = has_copied_inputs_ || output.copied_input.has_value();
    outputs_.push_back(output);
  }
  order_.resize(inputs_.size() + outputs_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  make_memory(plan);
}

void Context::make_memory(const Plan& plan) {
  // One block of memory with a slice for every allocation. For inputs and outputs it is staging
  // memory.
  std::vector<std::size_t> offsets;
  std::size_t size_bytes = 0;
  for (const Allocation& allocation : plan.allocations) {
    offsets.push_back(size_bytes);
    size_bytes += (std::max<std::size_t>(allocation.size_bytes, 1) + kAlignment - 1) / kAlignment *
                  kAlignment;
  }
  memory_ = make_aligned(size_bytes);
  for (std::size_t i = 0; i < plan.allocations.size(); ++i) {
    const Allocation& allocation = plan.allocations[i];
    std::byte* slice = static_cast<std::byte*>(memory_.get()) + offsets[i];
    switch (allocation.kind) {
      case Allocation::Kind::kInput:
        inputs_[allocation.number].staging = slice;
        break;
      case Allocation::Kind::kOutput:
        outputs_[allocation.number].staging = slice;
        outputs_[allocation.number].destination = slice;
        break;
      case Allocation::Kind::kConstant:
        std::memcpy(slice, allocation.bytes.data(), allocation.bytes.size());
        break;
      case Allocation::Kind::kPrivate:
        std::memset(slice, 0, allocation.size_bytes);
        break;
    }
    runner_.set_address(i, slice);
  }
}

bool Context::run(const cyxla_input* inputs, void* const* outputs) noexcept {
  std::uintptr_t difference = 0;
  for (std::size_t i = 0; i < last_inputs_.size(); ++i) {
    difference |= address(inputs[i].data) ^ address(last_inputs_[i]);
  }
  for (std::size_t i = 0; i < last_outputs_.size(); ++i) {
    difference |= address(outputs[i]) ^ address(last_outputs_[i]);
  }
  if (difference != 0) {
    bind(inputs, outputs);
  }
  if (copies_in_) {
    copy_in(inputs);
  }
  {
    [[maybe_unused]] const KernelFloatingPointScope scope;
    if (!runner_.run()) {
      return false;
    }
  }
  if (copies_out_) {
    copy_out(outputs);
  }
  return true;
}

void Context::bind(const cyxla_input* inputs, void* const* outputs) noexcept {
  MemoryRange all_inputs;
  bool copies_in = has_copied_inputs_;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
    const void* data = inputs[i].data;
    all_inputs.add(data, input.size_bytes);
    if (data != last_inputs_[i]) {
      last_inputs_[i] = data;
      if (!input.is_donated) {
        input.is_staged = input.size_bytes == 0 || !is_aligned(data);
        // Kernels do not write to the program's inputs.
        runner_.set_address(input.allocation,
                            input.is_staged ? input.staging : const_cast<void*>(data));
      }
    }
    copies_in = copies_in || input.is_staged;
  }
  copies_in_ = copies_in;

  MemoryRange all_outputs;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    last_outputs_[i] = outputs[i];
    output.is_staged = outputs[i] == nullptr || output.size_bytes == 0 || !is_aligned(outputs[i]);
    if (outputs[i] != nullptr) {
      all_outputs.add(outputs[i], output.size_bytes);
    }
  }
  if ((all_inputs.meets(all_outputs) || !all_outputs.is_ascending) &&
      may_overlap(inputs, outputs)) {
    stage_overlaps(inputs, outputs);
  }
  bool copies_out = false;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    void* destination = output.is_staged ? output.staging : outputs[i];
    if (destination != output.destination) {
      output.destination = destination;
      runner_.set_address(output.allocation, destination);
    }
    copies_out = copies_out || (output.is_staged && outputs[i] != nullptr);
  }
  copies_out_ = copies_out;
}

// Returns false if no output overlaps an input or another output. Few arrays are left to
// stage_overlaps(), which compares all pairs. Many are sorted by address. Sorting starts from the
// last order, because arrays that move mostly keep it.
bool Context::may_overlap(const cyxla_input* inputs, void* const* outputs) noexcept {
  constexpr std::size_t kFewArrays = 8;
  if (order_.size() <= kFewArrays) {
    return true;
  }
  const auto begin_of = [&](std::size_t array) {
    return address(array < inputs_.size() ? inputs[array].data : outputs[array - inputs_.size()]);
  };
  for (std::size_t i = 1; i < order_.size(); ++i) {
    const std::size_t array = order_[i];
    std::size_t position = i;
    for (; position > 0 && begin_of(order_[position - 1]) > begin_of(array); --position) {
      order_[position] = order_[position - 1];
    }
    order_[position] = array;
  }
  std::uintptr_t end_of_outputs = 0;
  std::uintptr_t end_of_all = 0;
  for (const std::size_t array : order_) {
    const bool is_output = array >= inputs_.size();
    if (begin_of(array) < (is_output ? end_of_all : end_of_outputs)) {
      return true;
    }
    const std::size_t size_bytes =
        is_output ? outputs_[array - inputs_.size()].size_bytes : inputs_[array].size_bytes;
    // Outputs with a null address are dropped.
    const std::uintptr_t end = begin_of(array) == 0 ? 0 : begin_of(array) + size_bytes;
    end_of_all = std::max(end_of_all, end);
    end_of_outputs = is_output ? std::max(end_of_outputs, end) : end_of_outputs;
  }
  return false;
}

void Context::stage_overlaps(const cyxla_input* inputs, void* const* outputs) noexcept {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    if (outputs[i] == nullptr) {
      continue;
    }
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      output.is_staged = output.is_staged || overlap(outputs[i], output.size_bytes, inputs[k].data,
                                                     inputs_[k].size_bytes);
    }
    // The earlier output needs no staging: this one is copied over it at the end.
    for (std::size_t k = 0; k < i; ++k) {
      output.is_staged = output.is_staged ||
                         (outputs[k] != nullptr && overlap(outputs[i], output.size_bytes,
                                                           outputs[k], outputs_[k].size_bytes));
    }
  }
}

void Context::copy_in(const cyxla_input* inputs) noexcept {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_staged) {
      copy_bytes(inputs_[i].staging, inputs[i].data, inputs_[i].size_bytes);
    }
  }
  if (has_copied_inputs_) {
    for (const Output& output : outputs_) {
      if (output.copied_input) {
        copy_bytes(output.destination, inputs[*output.copied_input].data, output.size_bytes);
      }
    }
  }
}

void Context::copy_out(void* const* outputs) noexcept {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].is_staged && outputs[i] != nullptr) {
      copy_bytes(outputs[i], outputs_[i].staging, outputs_[i].size_bytes);
    }
  }
}

}  // namespace cyxla::direct
