// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "direct/plan.h"
#include "direct/read/buffer_assignment.h"
#include "direct/read/hlo.h"

namespace cyxla::direct {

// The signature that a program was compiled for: bytes of each input and output.
struct Expected {
  std::vector<std::size_t> input_bytes;
  std::vector<std::size_t> output_bytes;
};

// The memory of a Plan, and the map from XLA's allocations to it.
struct Buffers {
  std::vector<Allocation> allocations;
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> outputs;
  // By XLA's allocation: its index above, unless steps must not use it.
  std::vector<std::optional<std::size_t>> indices;

  // A slice of XLA's allocation `number`. Throws Refusal where it leaves the allocation.
  Slice slice(std::uint64_t number, std::uint64_t offset, std::uint64_t size_bytes) const;
};

// Throws Refusal where the module has another signature, where an input or output does not have an
// allocation of its own, and where the program is so large that a direct call would not help.
Buffers read_buffers(const BufferAssignment& assignment, const HloModule& module,
                     const Expected& expected);

}  // namespace cyxla::direct
