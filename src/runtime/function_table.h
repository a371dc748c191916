// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

namespace cyxla::runtime {

// The C table. Only the Python layer knows Executables, so it brings the function for that member.
cyxla_api make_function_table(const cyxla_program_spec* (*program_spec)(void*)) noexcept;

}  // namespace cyxla::runtime
