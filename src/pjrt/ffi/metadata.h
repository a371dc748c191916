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

// What a plugin reveals of its FFI when it asks a handler for its metadata. The plugin owns `api`,
// which lives as long as the process.
struct FfiHost {
  const ffi::Api* api = nullptr;
  FfiVersion version;
  // A copy of the plugin's call frame, for cyxla's own calls: handlers insist on its exact size,
  // 168 bytes so far. A fixed array, so that nothing throws while the plugin's code is on the
  // stack.
  std::array<std::uint64_t, 64> frame = {};
};

// Returns the extension of a call that asks for metadata, or null.
ffi::MetadataExtension* metadata_extension(const ffi::CallFrame& frame) noexcept;

// Answers such a call: the handler has that version and no traits.
void answer_metadata(ffi::Metadata& metadata, FfiVersion version) noexcept;

// Makes an error of the plugin that called a handler. `code` is an absl status code.
[[nodiscard]] ffi::Error* make_ffi_error(const ffi::CallFrame& frame, int code,
                                         const char* message) noexcept;

// A handler that computes nothing. It records what the plugin reveals, in this thread's FfiProbe.
[[nodiscard]] ffi::Error* probe_handler(ffi::CallFrame* frame) noexcept;

// While it lives, probe_handler() fills `host` on this thread. Only one may exist in the process:
// FfiRegistry makes it under its lock.
class [[nodiscard]] FfiProbe {
 public:
  FfiProbe() noexcept;
  ~FfiProbe();
  FfiProbe(const FfiProbe&) = delete;
  FfiProbe& operator=(const FfiProbe&) = delete;

  // Empty unless the plugin called the handler with a frame that fits `FfiHost::frame`.
  std::optional<FfiHost> host;
};

// Asks a handler for its metadata through `frame`, with room for what a newer handler writes, and
// restores the frame. Returns null, or the handler's error.
[[nodiscard]] ffi::Error* ask_for_metadata(ffi::Handler handler, ffi::CallFrame& frame,
                                           ffi::Metadata& metadata);

// Returns the FFI version that a handler was built for. Throws Error (kUnsupported) with the
// handler's message when it does not report one.
FfiVersion handler_version(const FfiHost& host, const std::string& target, ffi::Handler handler);

// Returns the text of an error and destroys the error.
std::string take_message(const FfiHost& host, ffi::Error* error);

}  // namespace cyxla::pjrt
