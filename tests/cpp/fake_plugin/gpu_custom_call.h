// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pjrt_c_api.h>

namespace fake_plugin {

// The extension for custom calls on GPUs, as FAKE_PLUGIN_GPU_CUSTOM_CALL asks for it; null when
// there is none.
PJRT_Extension_Base* gpu_custom_call_extension() noexcept;

}  // namespace fake_plugin
