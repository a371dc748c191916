/* SPDX-License-Identifier: Apache-2.0 */
/* A C11 module's way of using cyxla, compiled with pedantic warnings as errors. */
#include <Python.h>

#include <cyxla/cyxla.h>
#include <cyxla/cyxla_import.h>

#include "abi_layout.h"

int c_consumer_execute(void* executable, double* values, size_t num_values, double* result);

int c_consumer_execute(void* executable, double* values, size_t num_values, double* result) {
  const cyxla_api* api = cyxla_import();
  if (api == NULL) {
    return -1;
  }
  const cyxla_program_spec* spec = api->program_spec(executable);
  if (spec == NULL || spec->num_inputs != 1 || spec->num_outputs != 1 ||
      spec->output_bytes[0] != sizeof *result || spec->output_elements[0] != 1 ||
      spec->output_ranks[0] != 0 || spec->input_dimensions[0][0] < 0 || spec->name[0] == '\0' ||
      spec->input_names[0] == spec->output_names[0] || spec->route == CYXLA_ROUTE_FUSED ||
      (spec->flags & CYXLA_NEEDS_PYTHON) != 0) {
    return -1;
  }
  const cyxla_input input = {values, spec->input_types[0], num_values};
  void* const outputs[] = {result};
  int status = 0;
  api->retain(spec);
  Py_BEGIN_ALLOW_THREADS status = api->execute(spec, &input, outputs, 1);
  cyxla_call* call = api->prepare(spec, &input, outputs, 1);
  if (call != NULL) {
    status = api->call(call);
    status |= api->rebind(call, 0, values + 1);
  }
  api->discard(call);
  if (status != 0 && api->last_error_code() != CYXLA_ERROR_NONE) {
    char message[256];
    (void)api->last_error(message, sizeof message);
    api->clear_error();
  }
  Py_END_ALLOW_THREADS api->release(spec);
  return status;
}
