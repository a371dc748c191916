// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace fake_plugin {

// The plugin's table of custom-call handlers, which behaves like XLA's: it asks each handler for
// its metadata, drops those of a newer version than its own, and keeps the first of a name. Any
// thread.

// An error of XLA's FFI, counted among PJRT's errors.
struct FfiError;

// Returns null, or why the handler was dropped.
FfiError* keep_handler(const std::string& target, const std::string& platform, void* handler);
void destroy(FfiError* error) noexcept;

// Calls a handler as an execution does. Returns 1 if it succeeds, -1 if it fails, 0 for an unknown
// target.
std::int32_t call_handler(const std::string& target, const std::string& platform, void* context);

void forget_handlers();

}  // namespace fake_plugin
