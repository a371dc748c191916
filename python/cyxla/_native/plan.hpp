// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "direct/plan.h"
#include "direct/read/read_plan.h"
#include "direct/refusal.h"

namespace cyxla::glue {

// Like direct::read_plan, for callers to whom a refusal is an error.
inline direct::Plan plan_of(const std::string& serialized, std::vector<std::size_t> input_bytes,
                            std::vector<std::size_t> output_bytes) {
  try {
    return direct::read_plan(serialized, {std::move(input_bytes), std::move(output_bytes)});
  } catch (const direct::Refusal& refusal) {
    throw Error(ErrorCode::kUnsupported, "", refusal.what());
  }
}

// Null unless the step is of this kind.
template <typename Kind>
const Kind* step_if(const direct::Step& step) noexcept {
  return std::get_if<Kind>(&step.what);
}

}  // namespace cyxla::glue
