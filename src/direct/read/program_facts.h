// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "direct/read/product.h"

namespace cyxla::direct {

// Facts that decide whether to compile a program a second time, with its matrix products as
// kernels. They follow from the program alone.
struct ProgramFacts {
  std::vector<Product> products;
  // The steps that keep it off the direct route, even with its products as kernels.
  std::vector<std::string> obstacles;
  std::size_t num_instructions = 0;  // of the optimized module
  double work = 0;                   // HloModule::work()
};

// Reads the result of an XLA:CPU plugin's PJRT_Executable_Serialize. Throws Refusal.
ProgramFacts read_facts(std::string_view serialized);

}  // namespace cyxla::direct
