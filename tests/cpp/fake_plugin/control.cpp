// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include <optional>

#include "executable.h"
#include "failures.h"
#include "ffi_handlers.h"
#include "ledger.h"
#include "settings.h"
#include "table.h"

#define FAKE_PLUGIN_EXPORT __attribute__((visibility("default")))

namespace {

using fake_plugin::FailureOf;
using fake_plugin::Function;

int32_t plan(FailureOf what, const char* name, uint64_t nth, int32_t code, const char* message) {
  std::optional<Function> function;
  if (name != nullptr) {
    Function found = {};
    if (!fake_plugin::find_function(name, found) ||
        (found >= Function::kCanFail && what != FailureOf::kException)) {
      return 0;
    }
    function = found;
  }
  fake_plugin::plan_failure(what, function, nth, {static_cast<PJRT_Error_Code>(code), message});
  return 1;
}

}  // namespace

extern "C" {

FAKE_PLUGIN_EXPORT void fake_plugin_reset(void) {
  fake_plugin::reset_settings();
  fake_plugin::reset_failures();
  fake_plugin::reset_ledger();
  fake_plugin::forget_handlers();
  fake_plugin::restore_table();
}

FAKE_PLUGIN_EXPORT void fake_plugin_set(int32_t setting, int64_t value) {
  fake_plugin::set_setting(static_cast<fake_plugin_setting>(setting), value);
  if (setting <= FAKE_PLUGIN_GPU_CUSTOM_CALL) {
    fake_plugin::fill_table();
  }
}

FAKE_PLUGIN_EXPORT int32_t fake_plugin_remove_function(const char* function) {
  Function found = {};
  if (!fake_plugin::find_function(function, found)) {
    return 0;
  }
  fake_plugin::remove_from_table(found);
  return 1;
}

FAKE_PLUGIN_EXPORT int32_t fake_plugin_fail(const char* function, uint64_t nth, int32_t code,
                                            const char* message) {
  return plan(FailureOf::kCall, function, nth, code, message);
}

FAKE_PLUGIN_EXPORT int32_t fake_plugin_fail_event(const char* function, uint64_t nth, int32_t code,
                                                  const char* message) {
  return plan(FailureOf::kEvent, function, nth, code, message);
}

FAKE_PLUGIN_EXPORT int32_t fake_plugin_hollow(const char* function, uint64_t nth,
                                              int32_t with_count) {
  return plan(with_count == 0 ? FailureOf::kHollowCall : FailureOf::kNullCall, function, nth, 0,
              "");
}

FAKE_PLUGIN_EXPORT int32_t fake_plugin_throw(const char* function, uint64_t nth,
                                             const char* message) {
  return plan(FailureOf::kException, function, nth, 0, message);
}

FAKE_PLUGIN_EXPORT uint64_t fake_plugin_failures(void) { return fake_plugin::failures(); }

FAKE_PLUGIN_EXPORT void fake_plugin_on_execute(void (*callback)(void* user_arg), void* user_arg) {
  fake_plugin::execute_callback() = {callback, user_arg};
}

FAKE_PLUGIN_EXPORT int32_t fake_plugin_call_target(const char* target, const char* platform,
                                                   void* context) {
  return fake_plugin::call_handler(target, platform, context);
}

FAKE_PLUGIN_EXPORT int64_t fake_plugin_live(int32_t kind) {
  if (kind >= 0) {
    return fake_plugin::live(static_cast<fake_plugin_kind>(kind));
  }
  int64_t total = 0;
  for (int32_t i = 0; i < FAKE_PLUGIN_NUM_KINDS; ++i) {
    total += fake_plugin::live(static_cast<fake_plugin_kind>(i));
  }
  return total;
}

FAKE_PLUGIN_EXPORT uint64_t fake_plugin_calls(const char* function) {
  if (function == nullptr) {
    return fake_plugin::all_calls();
  }
  Function found = {};
  return fake_plugin::find_function(function, found) ? fake_plugin::calls(found) : 0;
}

FAKE_PLUGIN_EXPORT int64_t fake_plugin_running(void) { return fake_plugin::running(); }

FAKE_PLUGIN_EXPORT uint64_t fake_plugin_violations(void) { return fake_plugin::violations(); }

FAKE_PLUGIN_EXPORT int32_t fake_plugin_inside(void) { return fake_plugin::is_inside() ? 1 : 0; }

FAKE_PLUGIN_EXPORT size_t fake_plugin_recorded(int32_t record, char* buffer, size_t size) {
  return fake_plugin::copy_record(static_cast<fake_plugin_record>(record), buffer, size);
}

FAKE_PLUGIN_EXPORT const char* fake_plugin_function(size_t index) {
  return index < static_cast<size_t>(Function::kCanFail)
             ? fake_plugin::function_name(static_cast<Function>(index))
             : nullptr;
}

}  // extern "C"
