// SPDX-License-Identifier: Apache-2.0
#include "gpu_custom_call.h"

#include <cstddef>
#include <cstdio>
#include <string>

#include "error.h"
#include "ledger.h"
#include "settings.h"
#include "table.h"

namespace fake_plugin {
namespace {

// The published ABI of PJRT's extension for GPUs.
struct RegisterCustomCallArgs {
  std::size_t struct_size;
  const char* function_name;
  std::size_t function_name_size;
  int api_version;
  void* handler_instantiate;
  void* handler_prepare;
  void* handler_initialize;
  void* handler_execute;
};
constexpr std::size_t kRegisterCustomCallArgsSize = 64;

struct GpuCustomCallExtension {
  PJRT_Extension_Base base;
  PJRT_Error* (*register_custom_call)(RegisterCustomCallArgs* args);
};

PJRT_Error* register_custom_call(RegisterCustomCallArgs* args) {
  count_call(Function::PJRT_Gpu_Register_Custom_Call);
  if (const auto failure = next_failure(FailureOf::kCall, Function::PJRT_Gpu_Register_Custom_Call);
      failure) {
    return make_error(*failure);
  }
  check_entry(Function::PJRT_Gpu_Register_Custom_Call,
              args->struct_size == kRegisterCustomCallArgsSize);
  char handler[128];
  std::snprintf(handler, sizeof handler, " %d %p %p %p %p\n", args->api_version,
                args->handler_instantiate, args->handler_prepare, args->handler_initialize,
                args->handler_execute);
  append_record(FAKE_PLUGIN_GPU_CUSTOM_CALLS,
                std::string(args->function_name, args->function_name_size) + handler);
  return nullptr;
}

}  // namespace

PJRT_Extension_Base* gpu_custom_call_extension() noexcept {
  static GpuCustomCallExtension extension;
  const std::int64_t kind = setting(FAKE_PLUGIN_GPU_CUSTOM_CALL);
  if (kind == 0) {
    return nullptr;
  }
  extension = {{sizeof extension, PJRT_Extension_Type_Gpu_Custom_Call, nullptr},
               kind == 3 ? nullptr : register_custom_call};
  if (kind == 2) {
    extension.base.struct_size = offsetof(GpuCustomCallExtension, register_custom_call);
  }
  return &extension.base;
}

}  // namespace fake_plugin
