// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "direct/plan.h"
#include "direct/read/buffers.h"

namespace cyxla::direct {

// Reads what PJRT_Executable_Serialize of an XLA:CPU plugin returned. Throws Refusal for a program
// that has to be left to the plugin, and for bytes in which anything is not understood.
Plan read_plan(std::string_view serialized, const Expected& expected);

}  // namespace cyxla::direct
