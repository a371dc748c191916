// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute.h"

#include <array>
#include <cstdio>
#include <new>
#include <vector>

#include "base/plugin_scope.h"
#include "pjrt/element_type.h"
#include "runtime/call_scope.h"
#include "runtime/checking.h"
#include "runtime/error_log.h"
#include "runtime/host_callbacks.h"
#include "runtime/program.h"
#include "runtime/references.h"
#include "runtime/runtime.h"

// A prepared call: its own context and the caller's arrays. Used by one thread at a time.
struct cyxla_call {
  cyxla::runtime::Program& program;
  cyxla::runtime::Context* context;
  std::vector<cyxla_input> inputs;
  std::vector<void*> outputs;
  cyxla::runtime::InputPolicy policy;
};

namespace cyxla::runtime {
namespace {

int fail_without_memory(const Program& program, const char* what) noexcept {
  record_error(ErrorCode::kInternal, "cannot %s the program %.200s: out of memory", what,
               program.signature().name.c_str());
  return -1;
}

bool check_arguments(const cyxla_program_spec* spec, const cyxla_input* inputs,
                     void* const* outputs) noexcept {
  if (spec == nullptr) {
    record_error(ErrorCode::kArgument, "the program spec is NULL; get one from program_spec()");
    return false;
  }
  const char* name = Program::of(*spec).signature().name.c_str();
  if (inputs == nullptr && spec->num_inputs > 0) {
    record_error(ErrorCode::kArgument, "the program %.200s takes %zu input%s, but `inputs` is NULL",
                 name, spec->num_inputs, plural(spec->num_inputs));
    return false;
  }
  if (outputs == nullptr && spec->num_outputs > 0) {
    record_error(ErrorCode::kArgument, "the program %.200s has %zu output%s, but `outputs` is NULL",
                 name, spec->num_outputs, plural(spec->num_outputs));
    return false;
  }
  for (std::size_t i = 0; i < spec->num_inputs; ++i) {
    const cyxla_input& input = inputs[i];
    if (input.element_type != spec->input_types[i]) {
      record_error(ErrorCode::kArgument,
                   "input %zu of the program %.200s must have element type %s (%d), not %s (%d)", i,
                   name, pjrt::element_type_name(spec->input_types[i]), spec->input_types[i],
                   pjrt::element_type_name(input.element_type), input.element_type);
      return false;
    }
    if (input.num_elements != spec->input_elements[i]) {
      record_error(ErrorCode::kArgument,
                   "input %zu of the program %.200s must have %zu element%s, not %zu", i, name,
                   spec->input_elements[i], plural(spec->input_elements[i]), input.num_elements);
      return false;
    }
    if (input.data == nullptr && spec->input_bytes[i] > 0) {
      record_error(ErrorCode::kArgument,
                   "input %zu of the program %.200s has %zu byte%s, but its data is NULL", i, name,
                   spec->input_bytes[i], plural(spec->input_bytes[i]));
      return false;
    }
  }
  return !is_checking() || check_bools(*spec, inputs);
}

int report(const Program& program, const Failure& failure,
           const HostCallbackScope& scope) noexcept {
  if (failure.status.ok()) {
    return fail_without_memory(program, "execute");
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

cyxla_call* prepare(const cyxla_program_spec* spec, const cyxla_input* inputs, void* const* outputs,
                    int zero_copy) noexcept {
  if (!check_arguments(spec, inputs, outputs)) {
    return nullptr;
  }
  Program& program = Program::of(*spec);
  if (!CallScope::check_usable(program)) {
    return nullptr;
  }
  Context* context = program.make_context();
  if (context == nullptr) {
    if (CallScope::check_usable(program)) {
      fail_without_memory(program, "prepare a call of");
    }
    return nullptr;
  }
  try {
    auto* call = new cyxla_call{program,
                                context,
                                {inputs, inputs + spec->num_inputs},
                                {outputs, outputs + spec->num_outputs},
                                zero_copy != 0 ? InputPolicy::kKeep : InputPolicy::kCopy};
    program.add_owner();
    return call;
  } catch (const std::bad_alloc&) {
    program.drop_context(context);
    fail_without_memory(program, "prepare a call of");
    return nullptr;
  }
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

void discard(cyxla_call* call) noexcept {
  if (call == nullptr) {
    return;
  }
  Program& program = call->program;
  if (!Runtime::forked()) {
    program.drop_context(call->context);
  }
  delete call;
  drop(&program.spec());
}

}  // namespace cyxla::runtime
