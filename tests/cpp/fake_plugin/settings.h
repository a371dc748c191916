// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "control.h"

namespace fake_plugin {

std::int64_t setting(fake_plugin_setting which) noexcept;
void set_setting(fake_plugin_setting which, std::int64_t value) noexcept;
void reset_settings() noexcept;

// Called by every execution while it runs.
struct ExecuteCallback {
  void (*function)(void* user_arg) = nullptr;
  void* user_arg = nullptr;
};
// May only be changed while nothing executes.
ExecuteCallback& execute_callback() noexcept;

// Waits for FAKE_PLUGIN_DELAY_US, and while FAKE_PLUGIN_HOLD is set when `may_hold`.
void take_time(bool may_hold);

}  // namespace fake_plugin
