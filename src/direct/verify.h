// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "direct/context.h"
#include "direct/executable.h"
#include "direct/random_values.h"

namespace cyxla::direct {

// Runs the same program by the plugin's own route, with arguments as Context::run. False: it
// failed.
using Reference = std::function<bool(const cyxla_input* inputs, void* const* outputs)>;

// Compares the direct route of a program with the plugin's, bit by bit: on numbers, zeros, infinite
// numbers, NaN and subnormal numbers, in memory that kernels can use in place and in memory that
// they cannot. The inputs are the same every time. A program whose loops may not end for every
// input is given numbers only. Must not outlive the executable; used by one thread at a time.
class Verification {
 public:
  // `input_types` holds the PJRT_Buffer_Type of each input. Throws std::bad_alloc.
  Verification(const Executable& executable, std::vector<std::int32_t> input_types);

  // Runs every set of inputs directly and looks at no result: what a child process can do.
  bool run(Context& context);
  // Empty when both routes agree; otherwise the reason, with the first difference.
  std::string compare(Context& context, const Reference& reference);

 private:
  struct Set {
    const char* name;
    Values values;
    bool is_aligned;
  };
  static const std::array<Set, 8> kSets;

  static std::uint64_t seed(const Set& set, std::size_t input) noexcept;
  bool wants(const Set& set) const noexcept;
  void prepare(const Set& set) noexcept;
  std::string difference(const Set& set) const;
  bool has_changed_inputs(const Set& set) const;

  const Executable& executable_;
  std::vector<std::int32_t> input_types_;
  // With room to begin off alignment.
  std::vector<AlignedMemory> input_memory_, output_memory_, expected_memory_;
  // What the two routes are given.
  std::vector<cyxla_input> inputs_;
  std::vector<void*> outputs_, expected_;
};

}  // namespace cyxla::direct
