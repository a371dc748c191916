// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "pjrt/pjrt_header.h"

namespace cyxla::fuzz {

// The functions of a plugin's table, as addresses.
inline constexpr std::size_t kFirstSlot = offsetof(PJRT_Api, PJRT_Error_Destroy);
inline constexpr std::size_t kNumSlots = (sizeof(PJRT_Api) - kFirstSlot) / sizeof(void*);

// Returns a table of the header's version with every function. The error functions work, with
// errors of this file; all others end the process.
PJRT_Api make_stub_table();

// Makes an error with this text, which must outlive it. Only one exists at a time.
PJRT_Error* make_error(std::string_view text, PJRT_Error_Code code);
// Returns whether that error was destroyed.
bool errors_are_destroyed();

}  // namespace cyxla::fuzz
