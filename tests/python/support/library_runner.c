// SPDX-License-Identifier: Apache-2.0
// runner NUMBER COUNT: calls the function with this number for each of COUNT sets of inputs on
// standard input, and writes the outputs to standard output.
#include <stdio.h>
#include <stdlib.h>

#include "library.h"

#define MOST_ARRAYS 64

// Aligned as a workspace is. The process ends soon, and frees it.
static void* allocate(uint64_t size_bytes) {
  char* const memory = malloc(size_bytes + 64);
  if (memory == NULL) {
    exit(3);
  }
  return memory + (64 - (uintptr_t)memory % 64);
}

int main(int count, char** arguments) {
  const cyxla_library_function* const functions[] = {FUNCTIONS};
  if (count != 3) {
    return 1;
  }
  const cyxla_library_function* const function = functions[atoi(arguments[1])];
  void *inputs[MOST_ARRAYS], *outputs[MOST_ARRAYS];
  for (uint64_t i = 0; i < function->num_inputs; ++i) {
    inputs[i] = allocate(function->inputs[i].size_bytes);
  }
  for (uint64_t i = 0; i < function->num_outputs; ++i) {
    outputs[i] = allocate(function->outputs[i].size_bytes);
  }
  void* const workspace = allocate(function->workspace_bytes);
  for (int set = 0; set < atoi(arguments[2]); ++set) {
    for (uint64_t i = 0; i < function->num_inputs; ++i) {
      if (fread(inputs[i], 1, function->inputs[i].size_bytes, stdin) !=
          function->inputs[i].size_bytes) {
        return 2;
      }
    }
    function->call((const void* const*)inputs, outputs, workspace);
    for (uint64_t i = 0; i < function->num_outputs; ++i) {
      if (fwrite(outputs[i], 1, function->outputs[i].size_bytes, stdout) !=
          function->outputs[i].size_bytes) {
        return 4;
      }
    }
  }
  return 0;
}
