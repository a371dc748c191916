// SPDX-License-Identifier: Apache-2.0
#include "runtime/function_table.h"

#include "base/aligned_memory.h"
#include "pjrt/element_type.h"
#include "runtime/error_log.h"
#include "runtime/execute.h"
#include "runtime/references.h"

namespace cyxla::runtime {

cyxla_api make_function_table(const cyxla_program_spec* (*program_spec)(void*)) noexcept {
  cyxla_api table = {};
  table.struct_size = sizeof table;
  table.abi_version = CYXLA_ABI_VERSION;
  table.spec_size = sizeof(cyxla_program_spec);
  table.execute = execute;
  table.program_spec = program_spec;
  table.retain = retain;
  table.release = release;
  table.prepare = prepare;
  table.call = call;
  table.discard = discard;
  table.last_error = last_error;
  table.aligned_memory = allocate_aligned;
  table.free_aligned = free_aligned;
  table.itemsize = pjrt::itemsize;
  table.last_error_code = last_error_number;
  table.clear_error = clear_error;
  table.rebind = rebind;
  return table;
}

}  // namespace cyxla::runtime
