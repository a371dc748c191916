// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string_view>

#include "direct/plan.h"
#include "direct/read/buffers.h"

namespace cyxla::direct {

// Reads a ThunkSequenceProto into the plan's `steps`, `kernels` and `has_unbounded_loop`. `symbols`
// are the names of the compiled kernels. Throws Refusal for a step that only the plugin runs.
void read_steps(std::string_view bytes, const Buffers& buffers,
                const std::set<std::string_view>& symbols, Plan& plan);

}  // namespace cyxla::direct
