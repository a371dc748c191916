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

// The state of one thread that runs an Executable: the addresses of the kernels' arguments, memory
// for temporaries and constants, and staging memory for inputs and outputs that kernels cannot use
// directly. The Executable must outlive it. Used by one thread at a time.
class [[nodiscard]] Context {
 public:
  // Throws std::bad_alloc. Nothing is allocated afterwards.
  explicit Context(const Executable& executable,
                   Runner::Counting counting = Runner::Counting::kOff);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Runs the program. `inputs` has num_inputs entries, and only their addresses are used. `outputs`
  // has num_outputs addresses; null drops an output. Addresses need no alignment. Outputs may
  // overlap inputs and each other; among outputs, the last one wins. Returns false when a kernel
  // reports an error; the outputs are then undefined.
  [[nodiscard]] bool run(const cyxla_input* inputs, void* const* outputs) noexcept;
  // Runner::limit_trips, for a trial run.
  void limit_trips(std::uint64_t count) noexcept { runner_.limit_trips(count); }
  // Runner::has_run.
  bool has_run(const Steps& block) const noexcept { return runner_.has_run(block); }

 private:
  struct Input {
    std::size_t allocation = 0;
    std::size_t size_bytes = 0;
    void* staging = nullptr;
    bool is_staged = false;
    bool is_donated = false;  // kernels read it from the memory of an output
  };
  struct Output {
    std::size_t allocation = 0;
    std::size_t size_bytes = 0;
    void* staging = nullptr;
    void* destination = nullptr;  // the address that kernels write to
    bool is_staged = false;
    std::optional<std::size_t> copied_input;
  };

  void make_memory(const Plan& plan);
  void bind(const cyxla_input* inputs, void* const* outputs) noexcept;
  void stage_overlaps(const cyxla_input* inputs, void* const* outputs) noexcept;
  bool may_overlap(const cyxla_input* inputs, void* const* outputs) noexcept;
  // Not inlined, to keep run() short for programs that copy nothing.
  [[gnu::noinline]] void copy_in(const cyxla_input* inputs) noexcept;
  [[gnu::noinline]] void copy_out(void* const* outputs) noexcept;

  Runner runner_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  // The caller's addresses of the last run, which the runner is bound to.
  std::vector<const void*> last_inputs_;
  std::vector<const void*> last_outputs_;
  std::vector<std::size_t>
      order_;  // of inputs, then outputs, by address; kept from the last comparison
  bool has_copied_inputs_ = false;
  bool copies_in_ = false;   // an input is staged or copied into an output
  bool copies_out_ = false;  // an output is staged and not dropped
  AlignedMemory memory_;
};

}  // namespace cyxla::direct
