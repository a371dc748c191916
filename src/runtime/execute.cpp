// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute.h"

#include <array>
#include <cstdio>

#include "base/plugin_scope.h"
#include "runtime/call_scope.h"
#include "runtime/checking.h"
#include "runtime/error_log.h"
#include "runtime/host_callbacks.h"
#include "runtime/prepared_call.h"
#include "runtime/program.h"

namespace cyxla::runtime {
namespace {

int report(const Program& program, const Failure& failure,
           const HostCallbackScope& scope) noexcept {
  if (failure.status.ok()) {
    record_error(ErrorCode::kInternal, "cannot execute the program %.200s: out of memory",
                 program.signature().name.c_str());
    return -1;
  }
  std::array<char, 64> what;
  std::snprintf(what.data(), what.size(), failure.what, failure.index);
  std::array<char, kMessageSize> message;
  failure.status.describe(message.data(), message.size());
  scope.end_failure(message.data());
  record_error(ErrorCode::kExecution, "%s the program %.200s failed: %s", what.data(),
               program.signature().name.c_str(), message.data());
  return -1;
}

// One execution with a context that is ours.
int run(const Program& program, Context& context, const cyxla_input* inputs, void* const* outputs,
        InputPolicy policy) noexcept {
  if (context.direct) {
    if (context.direct->run(inputs, outputs)) {
      return 0;
    }
    record_error(ErrorCode::kExecution, "executing the program %.200s failed: a kernel failed",
                 program.signature().name.c_str());
    return -1;
  }
  const NoCancellationScope no_cancellation;  // of waiting, too
  const HostCallbackScope scope(program);
  if (!scope.permitted()) {
    return -1;
  }
  Failure failure;
  return context.pjrt->execute(inputs, outputs, policy, failure) ? 0
                                                                 : report(program, failure, scope);
}

}  // namespace

int execute(const cyxla_program_spec* spec, const cyxla_input* inputs, void* const* outputs,
            int zero_copy) noexcept {
  if (!check_arguments(spec, inputs, outputs)) {
    return -1;
  }
  Program& program = Program::of(*spec);
  const CallScope scope(program);
  if (scope.context() == nullptr) {
    return -1;
  }
  return run(program, *scope.context(), inputs, outputs,
             zero_copy != 0 ? InputPolicy::kView : InputPolicy::kCopy);
}

int call(cyxla_call* call) noexcept {
  if (call == nullptr) {
    record_error(ErrorCode::kArgument, "the prepared call is NULL");
    return -1;
  }
  if (is_checking() && !check_bools(call->program.spec(), call->inputs.data())) {
    return -1;
  }
  const CallScope scope(call->program, *call->context);
  if (scope.context() == nullptr) {
    return -1;
  }
  return run(call->program, *call->context, call->inputs.data(), call->outputs.data(),
             call->policy);
}

}  // namespace cyxla::runtime
