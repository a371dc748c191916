// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "pjrt/ffi/abi.h"

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
  // The call as the plugin makes it, for calls of our own: handlers insist on its exact size, which
  // is 168 bytes so far. Here, so that nothing can be thrown while the plugin's code is on the
  // stack.
  std::array<std::uint64_t, 64> frame = {};
};

// The extension of a call that asks for metadata, or null.
ffi::MetadataExtension* metadata_extension(const ffi::CallFrame& frame) noexcept;

// Answers such a call: a handler of that version, without traits.
void answer_metadata(ffi::Metadata& metadata, FfiVersion version) noexcept;

// The plugin's error of a handler that it has called. `code` is one of absl's.
[[nodiscard]] ffi::Error* make_ffi_error(const ffi::CallFrame& frame, int code,
                                         const char* message) noexcept;

// A handler that computes nothing and notes what the plugin shows: into the host that an
// FfiProbe of the same thread has given.
[[nodiscard]] ffi::Error* probe_handler(ffi::CallFrame* frame) noexcept;

// While it lives, probe_handler() fills this in on this thread. One at a time in the process:
// FfiRegistry makes it under its lock.
class [[nodiscard]] FfiProbe {
 public:
  FfiProbe() noexcept;
  ~FfiProbe();
  FfiProbe(const FfiProbe&) = delete;
  FfiProbe& operator=(const FfiProbe&) = delete;

  // Empty unless the plugin has called the handler, in a way that can be repeated.
  std::optional<FfiHost> host;
};

// Asks a handler for its metadata through `frame`, with room for what a newer handler writes. The
// frame is as before afterwards. Null, or the handler's error.
[[nodiscard]] ffi::Error* ask_for_metadata(ffi::Handler handler, ffi::CallFrame& frame,
                                           ffi::Metadata& metadata);

// The version of the FFI that a handler was built for. Throws Error (kUnsupported) with the
// handler's own words when it does not tell.
FfiVersion handler_version(const FfiHost& host, const std::string& target, ffi::Handler handler);

// The text of an error, which it destroys.
std::string take_message(const FfiHost& host, ffi::Error* error);

}  // namespace cyxla::pjrt
