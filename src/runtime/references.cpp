// SPDX-License-Identifier: Apache-2.0
#include "runtime/references.h"

#include "runtime/error_log.h"
#include "runtime/program.h"
#include "runtime/runtime.h"

namespace cyxla::runtime {

void retain(const cyxla_program_spec* spec) noexcept {
  if (spec != nullptr) {
    Program::of(*spec).retain_spec();
  }
}

void release(const cyxla_program_spec* spec) noexcept {
  if (spec == nullptr) {
    return;
  }
  Program& program = Program::of(*spec);
  switch (program.release_spec()) {
    case Program::Release::kOthersRemain:
      return;
    case Program::Release::kWasLast:
      Runtime::get()->drop(program);
      return;
    case Program::Release::kNotRetained:
      record_error(ErrorCode::kArgument,
                   "the spec of the program %.200s was released more often than retained, which is "
                   "ignored; call release() once for each retain() of yours, and not for the spec "
                   "that program_spec() gives",
                   program.signature().name.c_str());
      return;
  }
}

void drop(const cyxla_program_spec* spec) noexcept {
  Program& program = Program::of(*spec);
  if (program.drop_owner()) {
    Runtime::get()->drop(program);
  }
}

}  // namespace cyxla::runtime
