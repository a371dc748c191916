// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <vector>

#include "runtime/context.h"
#include "runtime/program.h"

// A prepared call: its own context and the addresses that the caller bound. It owns a reference to
// its program and is used by one thread at a time.
struct cyxla_call {
  cyxla::runtime::Program& program;
  cyxla::runtime::Context* context;
  std::vector<cyxla_input> inputs;
  std::vector<void*> outputs;
  cyxla::runtime::InputPolicy policy;
};
