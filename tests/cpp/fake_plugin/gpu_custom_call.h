// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pjrt_c_api.h>

namespace fake_plugin {

// Returns the GPU custom-call extension as configured by FAKE_PLUGIN_GPU_CUSTOM_CALL, or null.
PJRT_Extension_Base* gpu_custom_call_extension() noexcept;

}  // namespace fake_plugin
