// SPDX-License-Identifier: Apache-2.0
#include "direct/read/read_plan.h"

#include <string>
#include <utility>

#include "direct/read/buffer_assignment.h"
#include "direct/read/compilation_result.h"
#include "direct/read/hlo.h"
#include "direct/read/steps.h"
#include "direct/read/work.h"
#include "direct/refusal.h"

namespace cyxla::direct {

Plan read_plan(std::string_view serialized, const Expected& expected) {
  CompilationResult result = read_compilation_result(serialized);
  const HloModule module(result.module);
  if (module.num_trips() > static_cast<double>(kMaxTripCount)) {
    throw Refusal(Reason::kTooLarge, "its loops, including nested ones, run more than " +
                                         std::to_string(kMaxTripCount) +
                                         " times, so calling it directly would not help");
  }
  if (!(module.work() <= kLongWork)) {
    throw Refusal(Reason::kTooLarge,
                  "a call takes more than about 20 ms, so calling it directly would not help");
  }
  const BufferAssignment assignment(result.buffer_assignment);
  Buffers buffers = read_buffers(assignment, module, expected);
  Plan plan{.has_unbounded_loop = module.has_unbounded_loop(), .work = module.work()};
  read_steps(result.steps, buffers, result.kernels, plan);
  plan.allocations = std::move(buffers.allocations);
  plan.inputs = std::move(buffers.inputs);
  plan.outputs = std::move(buffers.outputs);
  plan.objects = std::move(result.objects);
  return plan;
}

}  // namespace cyxla::direct
