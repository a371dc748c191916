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

// The memory of a Plan, and how the steps' slices are expressed in it.
struct Buffers {
  std::vector<Allocation> allocations;
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> outputs;
  // For each of XLA's allocations its index above; nothing for those that steps must not use.
  std::vector<std::optional<std::size_t>> indices;

  // Part of XLA's allocation `number`. Throws Refusal where it is not inside.
  Slice slice(std::uint64_t number, std::uint64_t offset, std::uint64_t size_bytes) const;
};

// Throws Refusal where the module's signature is not the expected one, where an input or output has
// no whole allocation of its own, and where the program is too large to gain from a direct call.
Buffers read_buffers(const BufferAssignment& assignment, const HloModule& module,
                     const Expected& expected);

}  // namespace cyxla::direct
