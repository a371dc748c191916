// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "direct/plan.h"
#include "direct/read/buffers.h"

namespace cyxla::fuzz {

// Ends the process when a plan lets its runner touch memory outside its allocations or breaks
// another promise of plan.h. Sanitizers would see that only when the kernels run.
void check_plan(const direct::Plan& plan, const direct::Expected& expected);

}  // namespace cyxla::fuzz
