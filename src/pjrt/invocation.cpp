// SPDX-License-Identifier: Apache-2.0
#include "pjrt/invocation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "pjrt/buffer.h"
#include "pjrt/event.h"

namespace cyxla::pjrt {
namespace {

constexpr const char* kExecute = "PJRT_LoadedExecutable_Execute";

}  // namespace

Invocation::Invocation(const Api& api, const LoadedExecutable& executable,
                       std::size_t num_arguments, std::size_t num_outputs,
                       std::size_t num_not_donated)
    : api_(&api),
      executable_(executable.get()),
      arguments_(num_arguments),
      outputs_(num_outputs),
      non_donatable_(std::min(num_arguments, num_not_donated)) {
  std::iota(non_donatable_.begin(), non_donatable_.end(), std::int64_t{0});
}

Status Invocation::run() noexcept {
  PJRT_ExecuteOptions options = {};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.non_donatable_input_indices = non_donatable_.data();
  options.num_non_donatable_input_indices = non_donatable_.size();

  PJRT_Buffer* const* argument_list = arguments_.data();
  PJRT_Buffer** output_list = outputs_.data();
  PJRT_Event* complete = nullptr;
  CYXLA_PJRT_ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = executable_;
  args.options = &options;
  args.argument_lists = &argument_list;
  args.num_devices = 1;
  args.num_args = arguments_.size();
  args.output_lists = &output_list;
  args.device_complete_events = &complete;

  Status status = guarded_call(*api_, CYXLA_SLOT(PJRT_LoadedExecutable_Execute), args);
  if (!status.ok()) {
    // After a failed call, cyxla does not own what the plugin may have left in the list.
    std::fill(outputs_.begin(), outputs_.end(), nullptr);
    return status;
  }
  const Event event(*api_, complete);
  status = event ? await(*api_, event) : await_outputs();
  if (status.ok() && std::find(outputs_.begin(), outputs_.end(), nullptr) != outputs_.end()) {
    status = Status::nothing_given(kExecute, "buffer for an output");
  }
  if (!status.ok()) {
    release_outputs();
  }
  return status;
}

Status Invocation::await_outputs() noexcept {
  Status first_failure;
  for (PJRT_Buffer* output : outputs_) {
    Status status = output == nullptr ? Status::nothing_given(kExecute, "buffer for an output")
                                      : await_contents(*api_, output);
    if (first_failure.ok()) {
      first_failure = std::move(status);
    }
  }
  return first_failure;
}

void Invocation::release_outputs() noexcept {
  for (PJRT_Buffer*& output : outputs_) {
    if (output != nullptr) {
      destroy(*api_, output);
      output = nullptr;
    }
  }
}

}  // namespace cyxla::pjrt
