// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pjrt/ffi_abi.h"

namespace cyxla::pjrt {

struct FfiVersion {
  int major = 0;
  int minor = 0;

  bool operator==(const FfiVersion&) const = default;
};

std::string to_string(FfiVersion version);

// What a plugin shows of its FFI when it asks a handler for its metadata. The functions of `api`
// belong to the plugin and live as long as it does.
struct FfiHost {
  const ffi::Api* api = nullptr;
  FfiVersion version;
  // The call as the plugin makes it, for calls of our own: handlers insist on its exact size.
  std::vector<std::uint64_t> frame;
};

// The extension of a call that asks for metadata, or null.
ffi::MetadataExtension* metadata_extension(const ffi::CallFrame& frame) noexcept;

// A handler that computes nothing and notes what the plugin shows: into the host that an
// FfiProbe of the same thread has given.
ffi::Error* probe_handler(ffi::CallFrame* frame);

// While it lives, probe_handler() fills this in on this thread.
class FfiProbe {
 public:
  FfiProbe() noexcept;
  ~FfiProbe();
  FfiProbe(const FfiProbe&) = delete;
  FfiProbe& operator=(const FfiProbe&) = delete;

  // Empty unless the plugin has called the handler.
  std::optional<FfiHost> host;
};

// Asks a handler for its metadata through `frame`, with room for what a newer handler writes. The
// frame is as before afterwards. Null, or the handler's error.
ffi::Error* ask_for_metadata(ffi::Handler handler, ffi::CallFrame& frame, ffi::Metadata& metadata);

// The version of the FFI that a handler was built for. Throws Error (kUnsupported) with the
// handler's own words when it does not tell.
FfiVersion handler_version(const FfiHost& host, const std::string& target, ffi::Handler handler);

// The text of an error, which it destroys.
std::string take_message(const FfiHost& host, ffi::Error* error);

}  // namespace cyxla::pjrt
