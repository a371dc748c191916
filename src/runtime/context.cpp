// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include <cstring>

namespace cyxla::runtime {
namespace {

// Up to this size a copy costs less than making a view (about 1.5 us), so an array is copied until
// its address comes a second time.
constexpr std::size_t kViewAtOnceBytes = 48 * 1024;

pjrt::Shape shape_of(const ArrayType& type) { return {type.element_type, type.dimensions}; }

}  // namespace

Context::Context(const pjrt::Client& client, Capabilities capabilities, const Signature& signature,
                 const pjrt::LoadedExecutable& executable)
    : client_(client),
      capabilities_(capabilities),
      inputs_(signature.inputs.size()),
      outputs_(signature.outputs.size()),
      invocation_(client.api(), executable, signature.inputs.size(), signature.outputs.size(),
                  signature.marks_donation) {
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
}

pjrt::Status Context::bind_input(std::size_t index, const void* data, InputPolicy policy) noexcept {
  Input& input = inputs_[index];
  pjrt::Status status;
  if (!capabilities_.aliased_inputs) {
    status = pjrt::copy_from_host(client_, data, input.shape, input.view);
    invocation_.set_argument(index, input.view.get());
    return status;
  }
  if (policy != InputPolicy::kCopy && input.size_bytes > 0 && is_aligned(data)) {
    if (data == input.viewed) {
      invocation_.set_argument(index, input.view.get());
      return status;
    }
    const bool worth_a_view = policy == InputPolicy::kKeep || data == input.last_copied ||
                              input.size_bytes >= kViewAtOnceBytes;
    if (worth_a_view) {
      status = view_input(input, data);
      invocation_.set_argument(index, input.view.get());
      return status;
    }
  }
  status = stage_input(input, data);
  invocation_.set_argument(index, input.staging_view.get());
  return status;
}

pjrt::Status Context::view_input(Input& input, const void* data) noexcept {
  input.view.reset();
  input.viewed = nullptr;
  // The PJRT interface takes views by mutable address; inputs are never donated, so nothing writes
  // there.
  pjrt::Status status = pjrt::make_view(client_, const_cast<void*>(data), input.shape, input.view);
  if (status.ok()) {
    input.viewed = data;
  }
  return status;
}

pjrt::Status Context::stage_input(Input& input, const void* data) noexcept {
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
  input.last_copied = data;
  return {};
}

pjrt::Status Context::read_output(std::size_t index, void* destination) noexcept {
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
  if (status.ok()) {
    std::memcpy(destination, data, output.size_bytes);
  }
  return status;
}

void Context::finish() noexcept {
  invocation_.release_outputs();
  if (!capabilities_.aliased_inputs) {
    for (Input& input : inputs_) {
      input.view.reset();
    }
  }
}

void Context::close() noexcept {
  invocation_.release_outputs();
  for (Input& input : inputs_) {
    input.view.reset();
    input.viewed = nullptr;
    input.staging_view.reset();
  }
}

}  // namespace cyxla::runtime
