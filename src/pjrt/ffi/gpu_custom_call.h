// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pjrt/api.h"

namespace cyxla::pjrt {

// A GPU custom-call handler's functions by stage; null for a stage that it lacks. They must stay in
// memory for the life of the process, because plugins cannot unregister them.
struct GpuHandler {
  // 1: XLA's typed FFI. 0: the older API, with a single function in `execute`.
  int api_version = 1;
  void* instantiate = nullptr;
  void* prepare = nullptr;
  void* initialize = nullptr;
  void* execute = nullptr;
};

// True when the plugin has PJRT's GPU custom-call extension.
bool has_gpu_custom_calls(const Api& api) noexcept;

// Registers a handler with a GPU plugin under a target name, through that extension. Unlike the FFI
// extension, it takes handlers of several stages and of the old API. Needs no client. When two
// handlers have the same name, the plugin silently keeps the first. Throws Error: kArgument for a
// handler without `execute`, or with further stages and the old API; kUnsupported when the plugin
// lacks the extension; kPlugin when it refuses.
void register_gpu_custom_call(const Api& api, const std::string& target, const GpuHandler& handler);

}  // namespace cyxla::pjrt
