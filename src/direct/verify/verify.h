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

// Runs the same program through the plugin, with the arguments of Context::run. Returns false when
// it fails.
using Reference = std::function<bool(const cyxla_input* inputs, void* const* outputs)>;

// Compares the direct route of a program with the plugin's, bit by bit: for numbers, zeros,
// infinity, NaN and subnormal numbers, in aligned and in unaligned memory. The inputs are the same
// every time. A program with unbounded loops gets numbers only, because other inputs may keep a
// loop running. The executable must outlive it. Used by one thread at a time.
class Verification {
 public:
  // `input_types` holds the PJRT_Buffer_Type of each input. Throws std::bad_alloc.
  Verification(const Executable& executable, std::vector<std::int32_t> input_types);

  // Runs every set of inputs directly and ignores the results, so a child process can call it.
  [[nodiscard]] bool run(Context& context);
  // Returns the first difference between the routes; empty when they agree.
  [[nodiscard]] std::string compare(Context& context, const Reference& reference);
  // The same with one of the kMaxVariations inputs of fill_varied(). An unbounded loop may not end
  // for it.
  [[nodiscard]] bool run_variation(Context& context, std::size_t variation);
  [[nodiscard]] std::string compare_variation(Context& context, const Reference& reference,
                                              std::size_t variation);

 private:
  struct Set {
    const char* name;
    Values values;
    bool is_aligned;
    std::optional<std::size_t> variation = std::nullopt;  // replaces `values`
  };
  static const std::array<Set, 8> kSets;

  static Set varied(std::size_t variation) noexcept {
    return {"varied numbers", Values::kNumbers, true, variation};
  }
  bool wants(const Set& set) const noexcept;
  void fill_input(const Set& set, std::size_t input, void* data) const noexcept;
  [[nodiscard]] std::string compare(const Set& set, Context& context, const Reference& reference);
  void prepare(const Set& set) noexcept;
  std::string difference(const Set& set) const;
  bool has_changed_inputs(const Set& set) const;

  const Executable& executable_;
  std::vector<std::int32_t> input_types_;
  std::size_t num_branches_;  // the most of any conditional
  // With room for an unaligned start.
  std::vector<AlignedMemory> input_memory_, output_memory_, expected_memory_;
  // The arguments of both routes.
  std::vector<cyxla_input> inputs_;
  std::vector<void*> outputs_, expected_;
};

}  // namespace cyxla::direct
