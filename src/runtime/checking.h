// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <cstddef>

namespace cyxla::runtime {

// True when CYXLA_CHECK is "1", which tests of native callers set to have values checked too. Reads
// the variable only once.
bool is_checking() noexcept;

// Each of the following returns true, or false after record_error().

// Whether the arguments of execute() and prepare() fit the program; with is_checking() also
// check_bools().
[[nodiscard]] bool check_arguments(const cyxla_program_spec* spec, const cyxla_input* inputs,
                                   void* const* outputs) noexcept;
// Whether input `index` may be read from `data`: NULL only when it has no elements; with
// is_checking() every byte of a bool is 0 or 1.
[[nodiscard]] bool check_data(const cyxla_program_spec& spec, std::size_t index,
                              const void* data) noexcept;
// Whether every byte of every bool input is 0 or 1.
[[nodiscard]] bool check_bools(const cyxla_program_spec& spec, const cyxla_input* inputs) noexcept;

}  // namespace cyxla::runtime
