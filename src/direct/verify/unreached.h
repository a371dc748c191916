// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "direct/plan.h"
#include "direct/run/context.h"

namespace cyxla::direct {

// A branch of a conditional or the body of a loop that no run of a context has reached.
struct UnreachedBlock {
  const Steps* block;
  const Step* step;      // the loop or the conditional
  std::size_t branch;    // of a conditional
  std::string contents;  // its steps other than kernels, such as "copies memory"; may be empty

  // Such as "branch 2 of the conditional in step 3 (cond.7)".
  std::string name() const;
  bool operator==(const UnreachedBlock& other) const noexcept { return block == other.block; }
};

// Returns the outermost blocks of a plan that a counting context has never run, except for those
// that no input can reach.
std::vector<UnreachedBlock> unreached_blocks(const Plan& plan, const Context& context);

// Returns the number of branches of the largest conditional, including nested ones; 0 without any.
std::size_t max_branches(const Steps& steps);

}  // namespace cyxla::direct
