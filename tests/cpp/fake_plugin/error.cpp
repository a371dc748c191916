// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "ledger.h"
#include "settings.h"

namespace fake_plugin {

PJRT_Error* make_error(PJRT_Error_Code code, const char* format, ...) {
  PJRT_Error* error = PJRT_Error::make(FAKE_PLUGIN_ERROR);
  error->code = code;
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  error->message_size =
      std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof error->message - 1);
  return error;
}

PJRT_Error* make_error(const Failure& failure) {
  return make_error(failure.code, "%s", failure.message);
}

PJRT_Error_Code error_code(const char* name) noexcept {
  constexpr const char* kNames[] = {"OK",
                                    "CANCELLED",
                                    "UNKNOWN",
                                    "INVALID_ARGUMENT",
                                    "DEADLINE_EXCEEDED",
                                    "NOT_FOUND",
                                    "ALREADY_EXISTS",
                                    "PERMISSION_DENIED",
                                    "RESOURCE_EXHAUSTED",
                                    "FAILED_PRECONDITION",
                                    "ABORTED",
                                    "OUT_OF_RANGE",
                                    "UNIMPLEMENTED",
                                    "INTERNAL",
                                    "UNAVAILABLE",
                                    "DATA_LOSS",
                                    "UNAUTHENTICATED"};
  for (std::size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    if (std::strcmp(kNames[i], name) == 0) {
      return static_cast<PJRT_Error_Code>(i);
    }
  }
  return PJRT_Error_Code_UNKNOWN;
}

namespace implementation {

void error_destroy(PJRT_Error_Destroy_Args& args) {
  if (args.error != nullptr && PJRT_Error::check(args.error, "PJRT_Error_Destroy")) {
    args.error->retire();
  }
}

void error_message(PJRT_Error_Message_Args& args) {
  args.message = nullptr;
  args.message_size = 0;
  if (PJRT_Error::check(args.error, "PJRT_Error_Message")) {
    args.message = setting(FAKE_PLUGIN_MUTE) == 1 ? nullptr : args.error->message;
    args.message_size = setting(FAKE_PLUGIN_MUTE) != 0 ? 0 : args.error->message_size;
  }
}

PJRT_Error* error_get_code(PJRT_Error_GetCode_Args& args) {
  if (!PJRT_Error::check(args.error, "PJRT_Error_GetCode")) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not an error");
  }
  args.code = args.error->code;
  return nullptr;
}

}  // namespace implementation
}  // namespace fake_plugin
