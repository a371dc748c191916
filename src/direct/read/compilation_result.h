// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cyxla::direct {

// The parts of the result of an XLA:CPU plugin's PJRT_Executable_Serialize. Views point into it.
struct CompilationResult {
  std::string_view module;
  std::string_view buffer_assignment;
  std::string_view steps;
  std::set<std::string_view> kernels;
  std::vector<std::string> objects;
};

// Throws Refusal for bytes that are not understood.
CompilationResult read_compilation_result(std::string_view serialized);

}  // namespace cyxla::direct
