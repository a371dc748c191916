// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pjrt_c_api.h>

namespace fake_plugin {

// The chain of extensions for the plugin's table, as FAKE_PLUGIN_FFI asks for it.
PJRT_Extension_Base* extensions() noexcept;

}  // namespace fake_plugin
