// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <bitset>

#include "error.h"
#include "ffi.h"
#include "ledger.h"
#include "settings.h"

namespace fake_plugin {
namespace {

struct Table {
  PJRT_Api api = {};
  std::bitset<kNumFunctions> removed;
};

Table& table() {
  static Table& result = *new Table;
  return result;
}

// What every function does before its own work, and after it: counts, fails as planned, checks the
// struct's size.
template <Function kFunction, bool kLate, auto kImplementation, std::size_t kSize, typename Args>
PJRT_Error* entry(Args* args) {
  count_call(kFunction);
  const auto failure = next_failure(FailureOf::kCall, kFunction);
  if (failure && !kLate) {
    return make_error(*failure);
  }
  if (args->struct_size != kSize) {
    violation(function_name(kFunction), "struct_size is not that of the header");
  }
  PJRT_Error* error = kImplementation(*args);
  if (failure && error == nullptr) {
    return make_error(*failure);
  }
  return error;
}

template <Function kFunction, auto kImplementation, std::size_t kSize, typename Args>
void void_entry(Args* args) {
  count_call(kFunction);
  if (args->struct_size != kSize) {
    violation(function_name(kFunction), "struct_size is not that of the header");
  }
  kImplementation(*args);
}

}  // namespace

void fill_table() noexcept {
  PJRT_Api& api = table().api;
  const auto& removed = table().removed;
  const auto keep = [&](Function function) { return !removed[static_cast<std::size_t>(function)]; };

  api = {};
  api.struct_size = static_cast<std::size_t>(setting(FAKE_PLUGIN_TABLE_SIZE));
  api.extension_start = extensions();
  api.pjrt_api_version = {PJRT_Api_Version_STRUCT_SIZE, nullptr,
                          static_cast<int>(setting(FAKE_PLUGIN_API_MAJOR)),
                          static_cast<int>(setting(FAKE_PLUGIN_API_MINOR))};
#define FAKE_PLUGIN_FILL(function, name, late)                           \
  if (keep(Function::function)) {                                        \
    api.function = entry<Function::function, late, implementation::name, \
                         function##_Args_STRUCT_SIZE, function##_Args>;  \
  }
#define FAKE_PLUGIN_EARLY(function, name) FAKE_PLUGIN_FILL(function, name, false)
#define FAKE_PLUGIN_LATE(function, name) FAKE_PLUGIN_FILL(function, name, true)
  FAKE_PLUGIN_FUNCTIONS(FAKE_PLUGIN_EARLY, FAKE_PLUGIN_LATE)
#undef FAKE_PLUGIN_LATE
#undef FAKE_PLUGIN_EARLY
#undef FAKE_PLUGIN_FILL
  if (keep(Function::PJRT_Error_Destroy)) {
    api.PJRT_Error_Destroy =
        void_entry<Function::PJRT_Error_Destroy, implementation::error_destroy,
                   PJRT_Error_Destroy_Args_STRUCT_SIZE, PJRT_Error_Destroy_Args>;
  }
  if (keep(Function::PJRT_Error_Message)) {
    api.PJRT_Error_Message =
        void_entry<Function::PJRT_Error_Message, implementation::error_message,
                   PJRT_Error_Message_Args_STRUCT_SIZE, PJRT_Error_Message_Args>;
  }
}

void remove_from_table(Function function) noexcept {
  table().removed.set(static_cast<std::size_t>(function));
  fill_table();
}

void restore_table() noexcept {
  table().removed.reset();
  fill_table();
}

}  // namespace fake_plugin

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  if (fake_plugin::setting(FAKE_PLUGIN_NULL_TABLE) != 0) {
    return nullptr;
  }
  if (fake_plugin::table().api.struct_size == 0) {
    fake_plugin::fill_table();
  }
  return &fake_plugin::table().api;
}
