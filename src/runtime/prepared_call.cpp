// SPDX-License-Identifier: Apache-2.0
// What happens to a prepared call besides calling it, which execute.cpp has.
#include "runtime/prepared_call.h"

#include <new>

#include "runtime/call_scope.h"
#include "runtime/checking.h"
#include "runtime/error_log.h"
#include "runtime/execute.h"
#include "runtime/references.h"
#include "runtime/runtime.h"

namespace cyxla::runtime {
namespace {

void record_no_memory(const Program& program) noexcept {
  record_error(ErrorCode::kInternal, "cannot prepare a call of the program %.200s: out of memory",
               program.signature().name.c_str());
}

}  // namespace

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
      record_no_memory(program);
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
    record_no_memory(program);
    return nullptr;
  }
}

int rebind(cyxla_call* call, std::size_t index, const void* address) noexcept {
  if (call == nullptr) {
    record_error(ErrorCode::kArgument, "the prepared call is NULL");
    return -1;
  }
  // An execution in flight reads the addresses, so it is refused as a second call would be.
  const CallScope scope(call->program, *call->context);
  if (scope.context() == nullptr) {
    return -1;
  }
  const cyxla_program_spec& spec = call->program.spec();
  if (index < spec.num_inputs) {
    if (!check_data(spec, index, address)) {
      return -1;
    }
    call->inputs[index].data = address;
    return 0;
  }
  const std::size_t output = index - spec.num_inputs;
  if (output >= spec.num_outputs) {
    record_error(
        ErrorCode::kArgument,
        "cannot rebind array %zu of the program %.200s: it has %zu input%s and %zu output%s;"
        " the index counts the inputs, then the outputs",
        index, spec.name, spec.num_inputs, plural(spec.num_inputs), spec.num_outputs,
        plural(spec.num_outputs));
    return -1;
  }
  call->outputs[output] = const_cast<void*>(address);
  return 0;
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
