// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "pjrt/ffi/abi.h"
#include "pjrt/ffi/metadata.h"

namespace cyxla::pjrt {

// The newest minor version of the FFI whose difference from older ones is known to be harmless to
// a handler: functions were added to the end of the API's table, and the call frame stayed the
// same.
inline constexpr int kNewestKnownFfiMinor = 5;

// How many handlers a process can adapt: a handler gets nothing to tell it which one it is, so each
// needs a function of its own.
inline constexpr std::size_t kNumFfiAdapters = 256;

// A function that does what `handler` does, and answers that it was built for no newer minor
// version than `minor`. The same arguments give the same function. It lives as long as the process,
// may be called by any thread and takes no lock. Throws Error (kUnsupported) when there is none
// left.
ffi::Handler adapt_ffi_handler(ffi::Handler handler, int minor);

}  // namespace cyxla::pjrt
