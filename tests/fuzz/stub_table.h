// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "pjrt/pjrt_header.h"

namespace cyxla::fuzz {

// The functions of a plugin's table, as addresses.
inline constexpr std::size_t kFirstSlot = offsetof(PJRT_Api, PJRT_Error_Destroy);
inline constexpr std::size_t kNumSlots = (sizeof(PJRT_Api) - kFirstSlot) / sizeof(void*);

// A table of the header's version that has every function. Those of errors work, with errors of
// this file's own; all others end the process when they are called.
PJRT_Api make_stub_table();

// An error with this text, which must live until the error is destroyed. There is one at a time.
PJRT_Error* make_error(std::string_view text, PJRT_Error_Code code);
// Whether that error was given back.
bool errors_are_destroyed();

}  // namespace cyxla::fuzz
