// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <pjrt_c_api.h>

namespace fake_plugin {
namespace {

constexpr std::array<std::int64_t, FAKE_PLUGIN_NUM_SETTINGS> kDefaults = [] {
  std::array<std::int64_t, FAKE_PLUGIN_NUM_SETTINGS> values = {};
  values[FAKE_PLUGIN_API_MAJOR] = PJRT_API_MAJOR;
  values[FAKE_PLUGIN_API_MINOR] = PJRT_API_MINOR;
  values[FAKE_PLUGIN_TABLE_SIZE] = PJRT_Api_STRUCT_SIZE;
  values[FAKE_PLUGIN_FFI_MINOR] = 4;
  values[FAKE_PLUGIN_NUM_DEVICES] = 1;
  return values;
}();

std::array<std::atomic<std::int64_t>, FAKE_PLUGIN_NUM_SETTINGS>& values() {
  static auto& result = *[] {
    auto* made = new std::array<std::atomic<std::int64_t>, FAKE_PLUGIN_NUM_SETTINGS>;
    for (std::size_t i = 0; i < made->size(); ++i) {
      (*made)[i] = kDefaults[i];
    }
    return made;
  }();
  return result;
}

}  // namespace

std::int64_t setting(fake_plugin_setting which) noexcept {
  return values()[which].load(std::memory_order_relaxed);
}

void set_setting(fake_plugin_setting which, std::int64_t value) noexcept {
  values()[which].store(value);
}

ExecuteCallback& execute_callback() noexcept {
  static ExecuteCallback callback;
  return callback;
}

void reset_settings() noexcept {
  execute_callback() = {};
  for (std::size_t i = 0; i < kDefaults.size(); ++i) {
    values()[i].store(kDefaults[i]);
  }
}

void take_time(bool may_hold) {
  if (const std::int64_t delay_us = setting(FAKE_PLUGIN_DELAY_US); delay_us > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
  }
  while (may_hold && setting(FAKE_PLUGIN_HOLD) != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace fake_plugin
