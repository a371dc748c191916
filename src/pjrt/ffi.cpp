// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi.h"

#include <cstddef>

#include "base/error.h"
#include "pjrt/status.h"

namespace cyxla::pjrt {
namespace {

// The PJRT FFI extension, declared from its published ABI: no package ships its header.
struct RegisterHandlerArgs {
  std::size_t struct_size;
  const char* target_name;
  std::size_t target_name_size;
  void* handler;
  const char* platform_name;
  std::size_t platform_name_size;
  std::uint32_t traits;
};

struct FfiExtension {
  PJRT_Extension_Base base;
  void* type_register;
  void* user_data_add;
  PJRT_Error* (*register_handler)(RegisterHandlerArgs* args);
};

static_assert(offsetof(FfiExtension, register_handler) == 40);

}  // namespace

void register_ffi_handler(const Api& api, const std::string& target, const std::string& platform,
                          void* handler) {
  const auto* extension =
      reinterpret_cast<const FfiExtension*>(api.extension(PJRT_Extension_Type_FFI));
  constexpr std::size_t kNeeded = offsetof(FfiExtension, register_handler) + sizeof(void*);
  if (extension == nullptr || extension->base.struct_size < kNeeded ||
      extension->register_handler == nullptr) {
    throw Error(ErrorCode::kUnsupported, "",
                "cannot register the custom-call target " + target + ": the plugin " +
                    api.source() + " has no FFI extension");
  }
  RegisterHandlerArgs args = {};
  args.struct_size = offsetof(RegisterHandlerArgs, traits) + sizeof args.traits;
  args.target_name = target.data();
  args.target_name_size = target.size();
  args.handler = handler;
  args.platform_name = platform.data();
  args.platform_name_size = platform.size();
  const Status status(api, extension->register_handler(&args), "PJRT_FFI_Register_Handler");
  if (!status.ok()) {
    throw Error(ErrorCode::kPlugin, "PJRT_FFI_Register_Handler",
                "the plugin refused the custom-call target " + target + ": " + status.message());
  }
}

}  // namespace cyxla::pjrt
