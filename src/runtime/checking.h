// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

namespace cyxla::runtime {

// Whether CYXLA_CHECK is "1": native callers are being tested, so values are checked too. The
// variable is read at the first call.
bool is_checking() noexcept;

// Whether every byte of every bool input is 0 or 1. Otherwise false after record_error.
[[nodiscard]] bool check_bools(const cyxla_program_spec& spec, const cyxla_input* inputs) noexcept;

}  // namespace cyxla::runtime
