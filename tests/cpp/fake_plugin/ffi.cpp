// SPDX-License-Identifier: Apache-2.0
#include "ffi.h"

#include <cstddef>
#include <string>

#include "error.h"
#include "ffi_handlers.h"
#include "gpu_custom_call.h"
#include "ledger.h"
#include "settings.h"
#include "table.h"

namespace fake_plugin {
namespace {

// The published ABI of PJRT's FFI extension.
struct RegisterHandlerArgs {
  std::size_t struct_size;
  const char* target_name;
  std::size_t target_name_size;
  void* handler;
  const char* platform_name;
  std::size_t platform_name_size;
  std::uint32_t traits;
};
constexpr std::size_t kRegisterHandlerArgsSize = 52;

struct FfiExtension {
  PJRT_Extension_Base base;
  void* type_register;
  void* user_data_add;
  PJRT_Error* (*register_handler)(RegisterHandlerArgs* args);
};

PJRT_Error* register_handler(RegisterHandlerArgs* args) {
  count_call(Function::PJRT_FFI_Register_Handler);
  if (const auto failure = next_failure(FailureOf::kCall, Function::PJRT_FFI_Register_Handler);
      failure) {
    return make_error(*failure);
  }
  check_entry(Function::PJRT_FFI_Register_Handler, args->struct_size == kRegisterHandlerArgsSize);
  // Like real plugins, does not report why a handler was dropped.
  destroy(keep_handler(std::string(args->target_name, args->target_name_size),
                       std::string(args->platform_name, args->platform_name_size), args->handler));
  return nullptr;
}

}  // namespace

PJRT_Extension_Base* extensions() noexcept {
  static FfiExtension ffi;
  static PJRT_Extension_Base layouts;
  ffi = {{sizeof ffi, PJRT_Extension_Type_FFI, gpu_custom_call_extension()},
         nullptr,
         nullptr,
         register_handler};
  layouts = {sizeof layouts, PJRT_Extension_Type_Layouts, &ffi.base};
  switch (setting(FAKE_PLUGIN_FFI)) {
    case 1:
      layouts.next = nullptr;
      break;
    case 2:
      ffi.base.struct_size = offsetof(FfiExtension, register_handler);
      break;
    case 3:
      ffi.register_handler = nullptr;
      break;
    default:
      break;
  }
  return &layouts;
}

}  // namespace fake_plugin
