// SPDX-License-Identifier: Apache-2.0
#include "functions.h"

#include <cstring>

namespace fake_plugin {
namespace {

constexpr const char* kNames[] = {
#define FAKE_PLUGIN_NAME(function, implementation) #function,
    FAKE_PLUGIN_FUNCTIONS(FAKE_PLUGIN_NAME, FAKE_PLUGIN_NAME)
#undef FAKE_PLUGIN_NAME
        "PJRT_FFI_Register_Handler",
    "PJRT_Gpu_Register_Custom_Call",
    "PJRT_Error_Destroy",
    "PJRT_Error_Message",
};
static_assert(sizeof kNames / sizeof *kNames == kNumFunctions);

}  // namespace

const char* function_name(Function function) noexcept {
  return kNames[static_cast<std::size_t>(function)];
}

bool find_function(const char* name, Function& out) noexcept {
  for (std::size_t i = 0; i < kNumFunctions; ++i) {
    if (std::strcmp(kNames[i], name) == 0) {
      out = static_cast<Function>(i);
      return true;
    }
  }
  return false;
}

}  // namespace fake_plugin
