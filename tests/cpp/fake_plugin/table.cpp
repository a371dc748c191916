// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <pthread.h>

#include <algorithm>
#include <bitset>
#include <cfenv>
#include <stdexcept>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "error.h"
#include "ffi.h"
#include "hollow.h"
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

// The number of nested table functions on the calling thread. In static TLS, so that an allocation
// function may read it.
[[gnu::tls_model("initial-exec")]] thread_local int depth = 0;

class Inside {
 public:
  Inside() noexcept { ++depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { --depth; }
};

// Compares with the state of a new program, except for the exception flags.
bool has_initial_floating_point() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kFlags = 0x3f;
  constexpr unsigned kInitial = 0x1f80;
  if ((_mm_getcsr() & ~kFlags) != kInitial) {
    return false;
  }
#endif
  return std::fegetround() == FE_TONEAREST;
}

bool can_be_cancelled() noexcept {
  int state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  pthread_setcancelstate(state, nullptr);
  return state == PTHREAD_CANCEL_ENABLE;
}

void throw_if_planned(Function function) {
  if (const auto exception = next_failure(FailureOf::kException, function)) {
    if (*exception->message == '\0') {
      throw 1;
    }
    throw std::runtime_error(exception->message);
  }
}

// Fills the slots beyond the table's size.
PJRT_Error* beyond_the_table(void* /*args*/) {
  violation("PJRT_Api", "a function beyond struct_size was called");
  return make_error(PJRT_Error_Code_UNIMPLEMENTED, "no such function");
}

// Surrounds every function: counts the call, fails as planned, checks the struct's size and the
// floating-point state.
template <Function kFunction, bool kLate, auto kImplementation, std::size_t kSize, typename Args>
PJRT_Error* entry(Args* args) {
  const Inside inside;
  count_call(kFunction);
  const auto failure = next_failure(FailureOf::kCall, kFunction);
  if (failure && !kLate) {
    return make_error(*failure);
  }
  check_entry(kFunction, args->struct_size == kSize);
  if constexpr (!kLate) {
    if (next_failure(FailureOf::kHollowCall, kFunction)) {
      return nullptr;
    }
    if (next_failure(FailureOf::kNullCall, kFunction)) {
      announce(*args);
      return nullptr;
    }
  }
  if (!kLate) {
    throw_if_planned(kFunction);
  }
  PJRT_Error* error = kImplementation(*args);
  if (kLate) {
    throw_if_planned(kFunction);
  }
  if (failure && error == nullptr) {
    return make_error(*failure);
  }
  return error;
}

template <Function kFunction, auto kImplementation, std::size_t kSize, typename Args>
void void_entry(Args* args) {
  const Inside inside;
  count_call(kFunction);
  check_entry(kFunction, args->struct_size == kSize);
  kImplementation(*args);
  throw_if_planned(kFunction);
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
  auto* slots = reinterpret_cast<void**>(&api);
  constexpr std::size_t kFirstFunction = offsetof(PJRT_Api, PJRT_Error_Destroy) / sizeof(void*);
  for (std::size_t i = std::max(api.struct_size / sizeof(void*), kFirstFunction);
       i < sizeof api / sizeof(void*); ++i) {
    slots[i] = reinterpret_cast<void*>(beyond_the_table);
  }
}

void check_entry(Function function, bool struct_size_is_right) noexcept {
  if (!struct_size_is_right) {
    violation(function_name(function), "struct_size is not that of the header");
  }
  if (!has_initial_floating_point()) {
    violation(function_name(function), "called in the caller's floating-point state");
  }
  if (setting(FAKE_PLUGIN_NEEDS_NO_CANCELLATION) != 0 && can_be_cancelled()) {
    violation(function_name(function), "called on a thread that can be cancelled");
  }
}

bool is_inside() noexcept { return depth > 0; }

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
