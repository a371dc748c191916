// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "pjrt/ffi/abi.h"
#include "pjrt/ffi/metadata.h"

namespace cyxla::pjrt {

// The newest minor version of the FFI whose handlers are known to work on older plugins: functions
// were only appended to the API table, and the call frame stayed the same.
inline constexpr int kNewestKnownFfiMinor = 5;

// How many handlers a process can adapt. A handler gets no argument that identifies it, so each
// needs a function of its own.
inline constexpr std::size_t kNumFfiAdapters = 256;

// Returns a function that forwards to `handler` and reports at most minor version `minor`. The same
// arguments give the same function. It lives as long as the process; any thread may call it; it
// takes no lock. Throws Error (kUnsupported) when all adapters are in use.
ffi::Handler adapt_ffi_handler(ffi::Handler handler, int minor);

}  // namespace cyxla::pjrt
