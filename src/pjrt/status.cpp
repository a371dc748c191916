// SPDX-License-Identifier: Apache-2.0
#include "pjrt/status.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>

#include "pjrt/api.h"

namespace cyxla::pjrt {
namespace {

// The error owns the text.
std::string_view error_text(const Api& api, const PJRT_Error* error) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Error_Message, args);
  args.error = error;
  try {
    api.table().PJRT_Error_Message(&args);
  } catch (...) {
    args.message = nullptr;
  }
  return args.message == nullptr || args.message_size == 0
             ? std::string_view("the plugin gave no message")
             : std::string_view(args.message, args.message_size);
}

constexpr const char* kThrew = "the plugin threw a C++ exception: ";

// Calls `use` with an exception's message.
template <typename Use>
void with_what(const std::exception_ptr& exception, Use use) {
  try {
    if (exception) {
      std::rethrow_exception(exception);
    }
  } catch (const std::exception& error) {
    use(error.what());
    return;
  } catch (...) {  // for example an exception of another C++ library
  }
  use("not a std::exception");
}

}  // namespace

Status& Status::operator=(Status&& other) noexcept {
  if (this != &other) {
    destroy();
    api_ = other.api_;
    error_ = std::exchange(other.error_, nullptr);
    function_ = other.function_;
    not_given_ = std::exchange(other.not_given_, nullptr);
    has_thrown_ = std::exchange(other.has_thrown_, false);
    exception_ = std::move(other.exception_);
  }
  return *this;
}

Status Status::nothing_given(const char* function, const char* what) noexcept {
  Status status;
  status.function_ = function;
  status.not_given_ = what;
  return status;
}

Status Status::exception_thrown(const char* function) noexcept {
  Status status;
  status.function_ = function;
  status.has_thrown_ = true;
  status.exception_ = std::current_exception();
  return status;
}

void Status::destroy() noexcept {
  if (error_ == nullptr) {
    return;
  }
  CYXLA_PJRT_ARGS(PJRT_Error_Destroy, args);
  args.error = std::exchange(error_, nullptr);
  try {
    api_->table().PJRT_Error_Destroy(&args);
  } catch (...) {  // nothing useful can be done about it
  }
}

std::string Status::message() const {
  if (has_thrown_) {
    std::string text = kThrew;
    with_what(exception_, [&](const char* what) { text += what; });
    return text;
  }
  if (not_given_ != nullptr) {
    return std::string("the plugin reported success but gave no ") + not_given_;
  }
  return ok() ? std::string() : std::string(error_text(*api_, error_));
}

void Status::describe(char* buffer, std::size_t size) const noexcept {
  if (size == 0) {
    return;
  }
  buffer[0] = '\0';
  if (has_thrown_) {
    with_what(exception_, [&](const char* what) {
      std::snprintf(buffer, size, "%s: %s%s", function_, kThrew, what);
    });
  } else if (not_given_ != nullptr) {
    std::snprintf(buffer, size, "%s: the plugin reported success but gave no %s", function_,
                  not_given_);
  } else if (!ok()) {
    const std::string_view text = error_text(*api_, error_);
    std::snprintf(buffer, size, "%s: %s: %.*s", function_, error_code_name(code()),
                  static_cast<int>(std::min(text.size(), size)), text.data());
  }
}

PJRT_Error_Code Status::code() const noexcept {
  CYXLA_PJRT_ARGS(PJRT_Error_GetCode, args);
  args.error = error_;
  args.code = PJRT_Error_Code_UNKNOWN;
  if (error_ != nullptr) {
    // GetCode itself can fail; its error is dropped.
    const Status nested = guarded_call(*api_, CYXLA_SLOT(PJRT_Error_GetCode), args);
    if (!nested.ok()) {
      return PJRT_Error_Code_UNKNOWN;
    }
  }
  return number_of(args.code) <= PJRT_Error_Code_UNAUTHENTICATED ? args.code
                                                                 : PJRT_Error_Code_UNKNOWN;
}

void Status::throw_if_error(ErrorCode code, const char* where) const {
  try {
    if (exception_) {
      std::rethrow_exception(exception_);
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {  // message() includes its text
  }
  if (!ok()) {
    const std::string kind =
        error_ == nullptr ? std::string() : std::string(error_code_name(this->code())) + ": ";
    throw Error(code, where, kind + message());
  }
}

const char* error_code_name(PJRT_Error_Code code) noexcept {
  switch (code) {
    case PJRT_Error_Code_CANCELLED:
      return "CANCELLED";
    case PJRT_Error_Code_UNKNOWN:
      return "UNKNOWN";
    case PJRT_Error_Code_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case PJRT_Error_Code_DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case PJRT_Error_Code_NOT_FOUND:
      return "NOT_FOUND";
    case PJRT_Error_Code_ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case PJRT_Error_Code_PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case PJRT_Error_Code_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case PJRT_Error_Code_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case PJRT_Error_Code_ABORTED:
      return "ABORTED";
    case PJRT_Error_Code_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case PJRT_Error_Code_UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    case PJRT_Error_Code_INTERNAL:
      return "INTERNAL";
    case PJRT_Error_Code_UNAVAILABLE:
      return "UNAVAILABLE";
    case PJRT_Error_Code_DATA_LOSS:
      return "DATA_LOSS";
    case PJRT_Error_Code_UNAUTHENTICATED:
      return "UNAUTHENTICATED";
    default:
      return "UNKNOWN";
  }
}

}  // namespace cyxla::pjrt
