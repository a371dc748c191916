// SPDX-License-Identifier: Apache-2.0
// Calls the function with a number in the library, for each set of inputs on standard input, and
// writes the outputs to standard output.
#include <stdio.h>
#include <stdlib.h>

#include "library.h"

#define MOST_ARRAYS 8

static void *allocate(uint64_t size_bytes) {
  void *memory = malloc(size_bytes + 1);
  if (memory == NULL) {
    exit(3);
  }
  return memory;
}

int main(int count, char **arguments) {
  const cyxla_library_function *const functions[] = {FUNCTIONS};
  const cyxla_library_function *const function = functions[count > 1 ? atoi(arguments[1]) : 0];
  void *inputs[MOST_ARRAYS], *outputs[MOST_ARRAYS];
  for (uint64_t i = 0; i < function->num_inputs; ++i) {
    inputs[i] = allocate(function->inputs[i].size_bytes);
  }
  for (uint64_t i = 0; i < function->num_outputs; ++i) {
    outputs[i] = allocate(function->outputs[i].size_bytes);
  }
  void *const workspace = allocate(function->workspace_bytes);
  for (;;) {
    for (uint64_t i = 0; i < function->num_inputs; ++i) {
      if (fread(inputs[i], function->inputs[i].size_bytes, 1, stdin) != 1) {
        return i == 0 ? 0 : 2;
      }
    }
    function->call((const void *const *)inputs, outputs, workspace);
    for (uint64_t i = 0; i < function->num_outputs; ++i) {
      if (fwrite(outputs[i], function->outputs[i].size_bytes, 1, stdout) != 1) {
        return 4;
      }
    }
  }
}
