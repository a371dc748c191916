// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions.h"

namespace fake_plugin {

// Fills the function table from the settings, without the removed functions.
void fill_table() noexcept;
void remove_from_table(Function function) noexcept;
void restore_table() noexcept;
// Records a violation for a wrong struct size or a wrong floating-point state of the caller.
void check_entry(Function function, bool struct_size_is_right) noexcept;
// Returns whether the calling thread runs a function of the plugin.
bool is_inside() noexcept;

}  // namespace fake_plugin
