// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {

// A function of the PJRT table: its name, its member, and the offset where that member ends.
template <typename Function>
struct Slot {
  const char* name;
  Function* PJRT_Api::*member;
  std::size_t end;
};

#define CYXLA_SLOT(function)                                                     \
  ::cyxla::pjrt::Slot<::function> {                                              \
#function, &PJRT_Api::function, offsetof(PJRT_Api, function) + sizeof(void*) \
  }

// Declares the zeroed argument struct of a PJRT function, with the header's size.
#define CYXLA_PJRT_ARGS(function, variable) \
  function##_Args variable = {};            \
  (variable).struct_size = function##_Args_STRUCT_SIZE

struct ApiVersion {
  int major = 0;
  int minor = 0;
};

class Status;

// A view of a plugin's function table. The plugin owns the table. It is never copied, because an
// older plugin's table is shorter than the header's; a slot is read only when it lies within the
// table's own size. Lives as long as the process; any thread may use it.
class Api {
 public:
  // Checks the table's size, its major version, and that it has every function that cyxla needs.
  // `source` (the library's path) appears in the messages. Throws Error (kPlugin).
  Api(const PJRT_Api* table, const std::string& source);

  template <typename Function>
  bool has(Slot<Function> slot) const noexcept {
    return slot.end <= table_->struct_size && table_->*slot.member != nullptr;
  }

  // Calls a function that returns PJRT_Error*. Throws Error (kUnsupported) when the table lacks it.
  template <typename Function, typename Args>
  Status call(Slot<Function> slot, Args& args) const;

  // For functions whose presence the constructor has checked.
  const PJRT_Api& table() const noexcept { return *table_; }
  ApiVersion version() const noexcept { return version_; }
  const std::string& source() const noexcept { return source_; }

  // Returns the first extension of a type in the plugin's chain, or null.
  const PJRT_Extension_Base* extension(PJRT_Extension_Type type) const noexcept;

 private:
  [[noreturn]] void throw_missing(const char* function) const;

  const PJRT_Api* table_;
  ApiVersion version_;
  std::string source_;
};

}  // namespace cyxla::pjrt

#include "pjrt/status.h"

namespace cyxla::pjrt {

// Calls a function that returns PJRT_Error*. XLA sometimes lets C++ exceptions escape; they become
// the status, because most callers are noexcept.
template <typename Function, typename Args>
Status guarded_call(const Api& api, const char* name, Function* function, Args& args) noexcept {
  try {
    return Status(api, function(&args), name);
  } catch (...) {
    return Status::exception_thrown(name);
  }
}
// As above, for a function that is known to be in the table.
template <typename Function, typename Args>
Status guarded_call(const Api& api, Slot<Function> slot, Args& args) noexcept {
  return guarded_call(api, slot.name, api.table().*slot.member, args);
}

template <typename Function, typename Args>
Status Api::call(Slot<Function> slot, Args& args) const {
  if (!has(slot)) {
    throw_missing(slot.name);
  }
  return guarded_call(*this, slot, args);
}

// Calls a function on a set-up path. Throws a failure as Error{code, function name, plugin's
// message}.
template <typename Function, typename Args>
void checked_call(const Api& api, Slot<Function> slot, Args& args, ErrorCode code) {
  api.call(slot, args).throw_if_error(code, slot.name);
}

// Throws Error when a successful call returned null in `given`.
template <typename Function, typename Given>
void check_given(Slot<Function> slot, const Given* given, const char* what, ErrorCode code) {
  if (given == nullptr) {
    Status::nothing_given(slot.name, what).throw_if_error(code, slot.name);
  }
}

}  // namespace cyxla::pjrt
