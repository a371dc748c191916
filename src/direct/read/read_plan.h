// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "direct/plan.h"
#include "direct/read/buffers.h"

namespace cyxla::direct {

// Reads the result of an XLA:CPU plugin's PJRT_Executable_Serialize. Throws Refusal for a program
// that only the plugin can run, and for bytes that are not understood.
Plan read_plan(std::string_view serialized, const Expected& expected);

}  // namespace cyxla::direct
