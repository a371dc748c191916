// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pjrt/api.h"

namespace cyxla::pjrt {

// Makes a custom-call handler known to the plugin under a target name. `platform` is the FFI's own
// name ("Host", "CUDA"). The handler must stay in memory for the life of the process: nothing can
// be unregistered. Throws Error, kUnsupported when the plugin has no FFI extension and kPlugin when
// it refuses.
void register_ffi_handler(const Api& api, const std::string& target, const std::string& platform,
                          void* handler);

}  // namespace cyxla::pjrt
