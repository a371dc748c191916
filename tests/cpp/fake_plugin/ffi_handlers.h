// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace fake_plugin {

// The plugin's table of custom-call handlers, which behaves as that of XLA: it asks each handler
// for its metadata, keeps none of a newer version than its own, and the first of a name. Any
// thread.

// An error of XLA's FFI, counted with those of PJRT.
struct FfiError;

// Null, or why the handler was dropped.
FfiError* keep_handler(const std::string& target, const std::string& platform, void* handler);
void destroy(FfiError* error) noexcept;

// Calls a handler as an execution does: 1 if it succeeds, -1 if it gives an error, 0 if there is
// none of that name.
std::int32_t call_handler(const std::string& target, const std::string& platform, void* context);

void forget_handlers();

}  // namespace fake_plugin
