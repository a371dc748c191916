// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pjrt_c_api.h>

namespace fake_plugin {

// Returns the table's extension chain, as configured by FAKE_PLUGIN_FFI.
PJRT_Extension_Base* extensions() noexcept;

}  // namespace fake_plugin
