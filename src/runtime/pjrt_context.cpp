// SPDX-License-Identifier: Apache-2.0
#include "runtime/pjrt_context.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/floating_point.h"
#include "base/scope_guard.h"

namespace cyxla::runtime {
namespace {

// Up to this size a copy costs less than making a view (about 1.5 us), so an array is copied until
// its address comes a second time.
constexpr std::size_t kViewAtOnceBytes = 48 * 1024;

pjrt::Shape shape_of(const ArrayType& type) { return {type.element_type, type.dimensions}; }

}  // namespace

PjrtContext::PjrtContext(const pjrt::Client& client, Capabilities capabilities,
                         const Signature& signature, const pjrt::LoadedExecutable& executable)
    : client_(client),
      capabilities_(capabilities),
      inputs_(signature.inputs.size()),
      outputs_(signature.outputs.size()),
      in_place_outputs_(signature.in_place_outputs),
      invocation_(
          client.api(), executable, signature.inputs.size() + signature.in_place_outputs.size(),
          signature.outputs.size(), signature.marks_donation ? signature.inputs.size() : 0) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].shape = shape_of(signature.inputs[i]);
    inputs_[i].size_bytes = signature.inputs[i].size_bytes();
    if (capabilities_.aliased_inputs) {
      inputs_[i].staging = make_aligned(inputs_[i].size_bytes);
    }
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].shape = shape_of(signature.outputs[i]);
    outputs_[i].size_bytes = signature.outputs[i].size_bytes();
  }
  for (std::size_t i = 0; i < in_place_outputs_.size(); ++i) {
    outputs_[in_place_outputs_[i]].destination_argument = inputs_.size() + i;
  }
}

bool PjrtContext::execute(const cyxla_input* inputs, void* const* outputs, InputPolicy policy,
                          Failure& failure) noexcept {
  const PluginFloatingPointScope floating_point;
  const ScopeGuard end([this] { finish(); });
  failure.what = "passing input %zu of";
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    failure.status = bind_input(i, inputs[i].data, policy);
    if (!failure.status.ok()) {
      failure.index = i;
      return false;
    }
  }
  for (const std::size_t i : in_place_outputs_) {
    if (!bind_output(i, outputs[i], inputs, failure.status)) {
      failure.what = "passing the destination of output %zu of";
      failure.index = i;
      return false;
    }
  }
  failure.status = invocation_.run();
  if (!failure.status.ok()) {
    failure.what = "executing";
    return false;
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs[i] != nullptr) {
      failure.status = read_output(i, outputs[i]);
      if (!failure.status.ok()) {
        failure.what = "reading output %zu of";
        failure.index = i;
        return false;
      }
    }
  }
  return true;
}

pjrt::Status PjrtContext::bind_input(std::size_t index, const void* data,
                                     InputPolicy policy) noexcept {
  Input& input = inputs_[index];
  pjrt::Status status;
  if (!capabilities_.aliased_inputs) {
    status = pjrt::copy_from_host(client_, data, input.shape, input.views[0]);
    invocation_.set_argument(index, input.views[0].get());
    return status;
  }
  if (policy != InputPolicy::kCopy && input.size_bytes > 0 && is_aligned(data)) {
    for (std::size_t i = 0; i < kNumViews; ++i) {
      if (input.viewed[i] == data) {
        invocation_.set_argument(index, input.views[i].get());
        return status;
      }
    }
    if (policy == InputPolicy::kKeep || input.size_bytes >= kViewAtOnceBytes ||
        std::find(input.copied.begin(), input.copied.end(), data) != input.copied.end()) {
      return view_input(index, data);
    }
  }
  status = stage_input(input, data);
  invocation_.set_argument(index, input.staging_view.get());
  return status;
}

pjrt::Status PjrtContext::view_input(std::size_t index, const void* data) noexcept {
  Input& input = inputs_[index];
  const std::size_t i = input.next_view;
  input.next_view = (i + 1) % kNumViews;
  input.views[i].reset();
  input.viewed[i] = nullptr;
  // The PJRT interface takes views by mutable address; inputs are never donated, so nothing writes
  // there.
  pjrt::Status status =
      pjrt::make_view(client_, const_cast<void*>(data), input.shape, input.views[i]);
  if (status.ok()) {
    input.viewed[i] = data;
    invocation_.set_argument(index, input.views[i].get());
  }
  return status;
}

pjrt::Status PjrtContext::stage_input(Input& input, const void* data) noexcept {
  if (!input.staging_view) {
    pjrt::Status status =
        pjrt::make_view(client_, input.staging.get(), input.shape, input.staging_view);
    if (!status.ok()) {
      return status;
    }
  }
  if (input.size_bytes > 0) {
    std::memcpy(input.staging.get(), data, input.size_bytes);
  }
  input.copied[input.next_copied] = data;
  input.next_copied = (input.next_copied + 1) % kNumViews;
  return {};
}

bool PjrtContext::overlaps_input(const Output& output, const void* destination,
                                 const cyxla_input* inputs) const noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(destination);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto input = reinterpret_cast<std::uintptr_t>(inputs[i].data);
    if (input < begin + output.size_bytes && begin < input + inputs_[i].size_bytes) {
      return true;
    }
  }
  return false;
}

bool PjrtContext::bind_output(std::size_t index, void* destination, const cyxla_input* inputs,
                              pjrt::Status& status) noexcept {
  Output& output = outputs_[index];
  if (output.destination_argument == kNoArgument) {
    return true;
  }
  if (destination == nullptr || !is_aligned(destination) ||
      overlaps_input(output, destination, inputs)) {
    if (output.scratch == nullptr) {
      output.scratch.reset(allocate_aligned(output.size_bytes));
      if (output.scratch == nullptr) {
        return false;
      }
    }
    destination = output.scratch.get();
  }
  status = pjrt::make_destination(client_, destination, output.shape, output.destination);
  invocation_.set_argument(output.destination_argument, output.destination.get());
  return status.ok();
}

pjrt::Status PjrtContext::read_output(std::size_t index, void* destination) noexcept {
  const Output& output = outputs_[index];
  if (output.size_bytes == 0) {
    return {};
  }
  PJRT_Buffer* buffer = invocation_.output(index);
  if (!capabilities_.inplace_outputs) {
    return pjrt::copy_to_host(client_.api(), buffer, output.shape, destination, output.size_bytes);
  }
  const void* data = nullptr;
  pjrt::Status status = pjrt::data_pointer(client_.api(), buffer, data);
  if (status.ok() && data != destination) {
    std::memcpy(destination, data, output.size_bytes);
  }
  return status;
}

void PjrtContext::finish() noexcept {
  invocation_.release_outputs();
  if (!capabilities_.aliased_inputs) {
    for (Input& input : inputs_) {
      input.views[0].reset();
    }
  }
  for (Output& output : outputs_) {
    output.destination.reset();
  }
}

void PjrtContext::close() noexcept {
  invocation_.release_outputs();
  for (Input& input : inputs_) {
    for (pjrt::Buffer& view : input.views) {
      view.reset();
    }
    input.viewed = {};
    input.staging_view.reset();
  }
  for (Output& output : outputs_) {
    output.destination.reset();
  }
}

}  // namespace cyxla::runtime
