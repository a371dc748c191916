/* SPDX-License-Identifier: Apache-2.0 */
/* cyxla called from C through its function table. */
#include <cyxla/cyxla.h>

/* Passes `num_sets` sets of inputs in turn; with more than one the addresses change with every
 * call. */
struct execute_state {
  const cyxla_api* api;
  const cyxla_program_spec* spec;
  const cyxla_input* inputs; /* of all sets, one after the other */
  void* const* outputs;
  size_t num_sets;
  size_t next_set;
  int zero_copy;
};

struct call_state {
  const cyxla_api* api;
  cyxla_call* call;
};

int cyxla_step_execute(void* state) {
  struct execute_state* own = state;
  const cyxla_input* inputs = own->inputs + own->next_set * own->spec->num_inputs;
  own->next_set = own->next_set + 1 == own->num_sets ? 0 : own->next_set + 1;
  return own->api->execute(own->spec, inputs, own->outputs, own->zero_copy);
}

int cyxla_step_call(void* state) {
  struct call_state* own = state;
  return own->api->call(own->call);
}

cyxla_call* cyxla_step_prepare(const cyxla_api* api, const cyxla_program_spec* spec,
                               const cyxla_input* inputs, void* const* outputs) {
  return api->prepare(spec, inputs, outputs, 1);
}

void cyxla_step_discard(const cyxla_api* api, cyxla_call* call) { api->discard(call); }

/* Needs the GIL. */
const cyxla_program_spec* cyxla_step_spec(const cyxla_api* api, void* executable) {
  return api->program_spec(executable);
}

size_t cyxla_step_error(const cyxla_api* api, char* buffer, size_t size) {
  return api->last_error(buffer, size);
}
