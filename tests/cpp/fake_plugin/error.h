// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <pjrt_c_api.h>

#include "failures.h"
#include "object.h"

// Owned by the caller until Error_Destroy.
struct PJRT_Error : fake_plugin::Object<PJRT_Error> {
  PJRT_Error_Code code;
  char message[512];
  std::size_t message_size;
};

namespace fake_plugin {

// Formats like printf. Cuts the text to the size of PJRT_Error::message.
[[gnu::format(printf, 2, 3)]] PJRT_Error* make_error(PJRT_Error_Code code, const char* format, ...);
PJRT_Error* make_error(const Failure& failure);

// Returns the code of a name such as "INTERNAL"; UNKNOWN for other names.
PJRT_Error_Code error_code(const char* name) noexcept;

}  // namespace fake_plugin
