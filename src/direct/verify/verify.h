// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "direct/load/executable.h"
#include "direct/run/context.h"
#include "direct/verify/random_values.h"

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
  // As run() and compare(), with one of kMaxVariations inputs that lead a program along other ways
  // (fill_varied). A loop of unknown length may not end for it.
  bool run_variation(Context& context, std::size_t variation);
  std::string compare_variation(Context& context, const Reference& reference,
                                std::size_t variation);

 private:
  struct Set {
    const char* name;
    Values values;
    bool is_aligned;
    std::optional<std::size_t> variation = std::nullopt;  // instead of `values`
  };
  static const std::array<Set, 8> kSets;

  static Set varied(std::size_t variation) noexcept {
    return {"varied numbers", Values::kNumbers, true, variation};
  }
  bool wants(const Set& set) const noexcept;
  void fill_input(const Set& set, std::size_t input, void* data) const noexcept;
  std::string compare(const Set& set, Context& context, const Reference& reference);
  void prepare(const Set& set) noexcept;
  std::string difference(const Set& set) const;
  bool has_changed_inputs(const Set& set) const;

  const Executable& executable_;
  std::vector<std::int32_t> input_types_;
  std::size_t num_branches_;  // the most of any conditional
  // With room to begin off alignment.
  std::vector<AlignedMemory> input_memory_, output_memory_, expected_memory_;
  // What the two routes are given.
  std::vector<cyxla_input> inputs_;
  std::vector<void*> outputs_, expected_;
};

}  // namespace cyxla::direct
