// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions.h"

namespace fake_plugin {

// Fills the function table anew from the settings, without the removed functions.
void fill_table() noexcept;
void remove_from_table(Function function) noexcept;
void restore_table() noexcept;
// Reports a wrong struct, and the floating-point state of a caller who did not see to it.
void check_entry(Function function, bool struct_size_is_right) noexcept;
// Whether the calling thread runs one of its functions.
bool is_inside() noexcept;

}  // namespace fake_plugin
