// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pjrt/api.h"

namespace cyxla::pjrt {

// The functions of a custom-call handler for a GPU, by stage; null for a stage that it lacks. They
// must stay in memory for the life of the process: nothing can be unregistered.
struct GpuHandler {
  // 1: XLA's typed FFI. 0: the custom call before it, a function as `execute` alone.
  int api_version = 1;
  void* instantiate = nullptr;
  void* prepare = nullptr;
  void* initialize = nullptr;
  void* execute = nullptr;
};

// Whether the plugin has PJRT's extension for custom calls on GPUs.
bool has_gpu_custom_calls(const Api& api) noexcept;

// Makes a handler known to a GPU plugin under a target name, through that extension: unlike the FFI
// extension it takes handlers of several stages and of the old API. Needs no client. Of two
// handlers with one name the plugin keeps the first without a word. Throws Error, kArgument for a
// handler without `execute`, or with other stages and the old API; kUnsupported when the plugin has
// no such extension; kPlugin when it refuses.
void register_gpu_custom_call(const Api& api, const std::string& target, const GpuHandler& handler);

}  // namespace cyxla::pjrt
