// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "pjrt/ffi/abi.h"
#include "pjrt/ffi/metadata.h"

namespace cyxla::test {

inline constexpr std::int64_t kStateType = 77;
inline constexpr std::uint32_t kTraits = 1;

// Returned by handlers instead of an error: only its address is used.
inline pjrt::ffi::Error* marked_error() {
  static int mark = 0;
  return reinterpret_cast<pjrt::ffi::Error*>(&mark);
}

// A handler that reports a version, and adds kAdded to the integer that the call's context points
// to. From minor version 5 on it writes all of today's metadata.
template <int kMajor, int kMinor, int kAdded = 1>
pjrt::ffi::Error* adding_handler(pjrt::ffi::CallFrame* frame) {
  if (const pjrt::ffi::MetadataExtension* extension = pjrt::metadata_extension(*frame)) {
    pjrt::ffi::Metadata& metadata = *extension->metadata;
    metadata.api_version.major_version = kMajor;
    metadata.api_version.minor_version = kMinor;
    metadata.traits = kTraits;
    if (kMinor >= 5) {
      metadata.state_type_id = kStateType;
    }
    return nullptr;
  }
  static_cast<std::atomic<int>*>(frame->context)->fetch_add(kAdded);
  return nullptr;
}

template <int kMajor, int kMinor, int kAdded = 1>
void* handler_address() {
  return reinterpret_cast<void*>(adding_handler<kMajor, kMinor, kAdded>);
}

}  // namespace cyxla::test
