// SPDX-License-Identifier: Apache-2.0
#include "runtime/checking.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "runtime/error_log.h"
#include "runtime/program.h"

namespace cyxla::runtime {

bool is_checking() noexcept {
  static const bool is_on = [] {
    const char* const value = std::getenv("CYXLA_CHECK");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return is_on;
}

bool check_bools(const cyxla_program_spec& spec, const cyxla_input* inputs) noexcept {
  for (std::size_t i = 0; i < spec.num_inputs; ++i) {
    if (spec.input_types[i] != CYXLA_PRED) {
      continue;
    }
    const auto* const begin = static_cast<const unsigned char*>(inputs[i].data);
    const auto* const end = begin + spec.input_elements[i];
    const auto* const found = std::find_if(begin, end, [](unsigned char byte) { return byte > 1; });
    if (found != end) {
      record_error(ErrorCode::kArgument,
                   "input %zu of the program %.200s is bool, but element %td has the byte %d; write"
                   " 0 or 1",
                   i, Program::of(spec).signature().name.c_str(), found - begin, int{*found});
      return false;
    }
  }
  return true;
}

}  // namespace cyxla::runtime
