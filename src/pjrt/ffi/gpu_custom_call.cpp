// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/gpu_custom_call.h"

#include <cstddef>

#include "base/error.h"
#include "pjrt/status.h"

namespace cyxla::pjrt {
namespace {

// PJRT's extension for GPUs, declared from its published ABI: packages do not ship its header.
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

struct GpuCustomCallExtension {
  PJRT_Extension_Base base;
  PJRT_Error* (*register_custom_call)(RegisterCustomCallArgs* args);
};

static_assert(offsetof(RegisterCustomCallArgs, handler_instantiate) == 32);
static_assert(sizeof(RegisterCustomCallArgs) == 64);
static_assert(offsetof(GpuCustomCallExtension, register_custom_call) == 24);

const GpuCustomCallExtension* usable_extension(const Api& api) noexcept {
  const auto* extension = reinterpret_cast<const GpuCustomCallExtension*>(
      api.extension(PJRT_Extension_Type_Gpu_Custom_Call));
  const bool usable = extension != nullptr &&
                      extension->base.struct_size >= sizeof(GpuCustomCallExtension) &&
                      extension->register_custom_call != nullptr;
  return usable ? extension : nullptr;
}

}  // namespace

bool has_gpu_custom_calls(const Api& api) noexcept { return usable_extension(api) != nullptr; }

void register_gpu_custom_call(const Api& api, const std::string& target,
                              const GpuHandler& handler) {
  const std::string failed = "cannot register the custom-call target " + target + ": ";
  if (handler.execute == nullptr) {
    throw Error(ErrorCode::kArgument, "", failed + "its execute function is null; pass one");
  }
  const bool has_stages =
      handler.instantiate != nullptr || handler.prepare != nullptr || handler.initialize != nullptr;
  if (handler.api_version != 1 && (handler.api_version != 0 || has_stages)) {
    throw Error(ErrorCode::kArgument, "",
                failed + "api_version is " + std::to_string(handler.api_version) +
                    "; pass 1 for the typed FFI, or 0 for a single function of the old API");
  }
  const GpuCustomCallExtension* extension = usable_extension(api);
  if (extension == nullptr) {
    throw Error(ErrorCode::kUnsupported, "",
                failed + "the plugin " + api.source() +
                    " has no GPU custom-call extension; use a GPU plugin");
  }
  RegisterCustomCallArgs args = {};
  args.struct_size = sizeof args;
  args.function_name = target.data();
  args.function_name_size = target.size();
  args.api_version = handler.api_version;
  args.handler_instantiate = handler.instantiate;
  args.handler_prepare = handler.prepare;
  args.handler_initialize = handler.initialize;
  args.handler_execute = handler.execute;
  const Status status(api, extension->register_custom_call(&args), "PJRT_Gpu_Register_Custom_Call");
  if (!status.ok()) {
    throw Error(ErrorCode::kPlugin, "PJRT_Gpu_Register_Custom_Call",
                "the plugin refused the custom-call target " + target + ": " + status.message());
  }
}

}  // namespace cyxla::pjrt
