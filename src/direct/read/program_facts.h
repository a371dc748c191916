// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "direct/read/product.h"

namespace cyxla::direct {

// What decides whether a program that the plugin has to run is worth compiling a second time, with
// its matrix products as kernels. It follows from the program alone.
struct ProgramFacts {
  std::vector<Product> products;
  // What keeps it off the direct route in whichever form its products are.
  std::vector<std::string> obstacles;
  std::size_t num_instructions = 0;  // of the optimized module
  double work = 0;                   // as of HloModule
};

// Reads what PJRT_Executable_Serialize of an XLA:CPU plugin returned. Throws Refusal.
ProgramFacts read_facts(std::string_view serialized);

}  // namespace cyxla::direct
