// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/aligned_memory.h"
#include "direct/load/executable.h"
#include "direct/run/runner.h"

namespace cyxla::direct {

// What one thread needs to run an Executable: the addresses that its kernels work on, memory for
// its temporaries and constants, and memory for inputs and outputs that the kernels cannot use
// where they are. Must not outlive its Executable; used by one thread at a time.
class Context {
 public:
  // Throws std::bad_alloc. Nothing is allocated afterwards.
  explicit Context(const Executable& executable,
                   Runner::Counting counting = Runner::Counting::kOff);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Runs the program. `inputs` has num_inputs entries, of which only the addresses are looked at;
  // `outputs` num_outputs addresses, where null drops that output. Memory may lie at any address.
  // Outputs may overlap inputs, and each other: the last one then wins. Returns false when a kernel
  // reports an error; the outputs are undefined then.
  bool run(const cyxla_input* inputs, void* const* outputs) noexcept;
  // As Runner::limit_trips, for a trial.
  void limit_trips(std::uint64_t count) noexcept { runner_.limit_trips(count); }
  // As Runner::has_run.
  bool has_run(const Steps& block) const noexcept { return runner_.has_run(block); }

 private:
  struct Input {
    std::size_t allocation = 0;
    std::size_t size_bytes = 0;
    void* staging = nullptr;
    bool is_staged = false;
    bool is_donated = false;  // the kernels find it in an output's memory
  };
  struct Output {
    std::size_t allocation = 0;
    std::size_t size_bytes = 0;
    void* staging = nullptr;
    void* placed = nullptr;  // where the kernels write
    bool is_staged = false;
    std::optional<std::size_t> copied_input;
  };

  void make_memory(const Plan& plan);
  void bind(const cyxla_input* inputs, void* const* outputs) noexcept;
  void stage_overlaps(const cyxla_input* inputs, void* const* outputs) noexcept;
  bool may_overlap(const cyxla_input* inputs, void* const* outputs) noexcept;
  // Apart from run(), which stays short where nothing is copied.
  [[gnu::noinline]] void copy_in(const cyxla_input* inputs) noexcept;
  [[gnu::noinline]] void copy_out(void* const* outputs) noexcept;

  Runner runner_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  // The caller's addresses of the last run, to which everything is bound.
  std::vector<const void*> last_inputs_;
  std::vector<const void*> last_outputs_;
  std::vector<std::size_t> order_;  // inputs, then outputs, by address as far as was needed
  bool has_copied_inputs_ = false;
  bool copies_in_ = false;   // some input is staged or starts an output
  bool copies_out_ = false;  // some output is staged and wanted
  AlignedMemory memory_;
};

}  // namespace cyxla::direct
