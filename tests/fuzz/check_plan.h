// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "direct/plan.h"
#include "direct/read/buffers.h"

namespace cyxla::fuzz {

// Ends the process where a plan lets its runner touch memory outside its allocations, or breaks
// what else plan.h promises: sanitizers would only see it when the kernels run.
void check_plan(const direct::Plan& plan, const direct::Expected& expected);

}  // namespace cyxla::fuzz
