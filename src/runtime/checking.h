// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

namespace cyxla::runtime {

// True when CYXLA_CHECK is "1", which tests of native callers set to have values checked too. Reads
// the variable only once.
bool is_checking() noexcept;

// Returns whether every byte of every bool input is 0 or 1. Records an error when one is not.
bool check_bools(const cyxla_program_spec& spec, const cyxla_input* inputs) noexcept;

}  // namespace cyxla::runtime
