// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "direct/load/code.h"
#include "direct/load/kernel.h"
#include "direct/load/symbols.h"
#include "direct/plan.h"

namespace cyxla::direct {

// A program with its kernels in memory, ready to be called. Immutable, so threads may share it,
// each with a Context of its own. It must outlive all contexts.
class [[nodiscard]] Executable {
 public:
  // Throws Refusal when the kernels cannot be loaded.
  Executable(Plan plan, const ExternalSymbols& symbols);
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // The plan, without the object files.
  const Plan& plan() const noexcept { return plan_; }
  KernelFunction* kernel(std::size_t index) const noexcept { return kernels_[index]; }

  std::size_t num_inputs() const noexcept { return plan_.inputs.size(); }
  std::size_t num_outputs() const noexcept { return plan_.outputs.size(); }
  std::size_t input_bytes(std::size_t index) const noexcept {
    return plan_.allocations[plan_.inputs[index]].size_bytes;
  }
  std::size_t output_bytes(std::size_t index) const noexcept {
    return plan_.allocations[plan_.outputs[index]].size_bytes;
  }
  std::size_t code_bytes() const noexcept { return code_.size_bytes(); }

 private:
  Plan plan_;
  Code code_;
  std::vector<KernelFunction*> kernels_;  // by index into Plan::kernels
};

}  // namespace cyxla::direct
