// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "base/error.h"
#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {

class Api;

// The result of a PJRT call: null means success. Owns the PJRT_Error and destroys it on every path.
// Must not outlive the plugin's table; may move between threads.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  // `function` is the PJRT function that returned the error; the text is not copied.
  Status(const Api& api, PJRT_Error* error, const char* function) noexcept
      : api_(&api), error_(error), function_(function) {}
  // For a function that reported success but returned null for `what`; neither text is copied.
  static Status nothing_given(const char* function, const char* what) noexcept;
  // For a function that threw the exception being handled.
  static Status exception_thrown(const char* function) noexcept;
  Status(Status&& other) noexcept
      : api_(other.api_),
        error_(std::exchange(other.error_, nullptr)),
        function_(other.function_),
        not_given_(std::exchange(other.not_given_, nullptr)),
        has_thrown_(std::exchange(other.has_thrown_, false)),
        exception_(std::move(other.exception_)) {}
  Status& operator=(Status&& other) noexcept;
  ~Status() { destroy(); }

  bool ok() const noexcept { return error_ == nullptr && not_given_ == nullptr && !has_thrown_; }

  // Describes the failure, in the plugin's words if it gave any. Empty when ok.
  std::string message() const;
  // Writes "PJRT_Client_Compile: INTERNAL: message", cut to `size` bytes including its final zero;
  // empty when ok. Allocates nothing.
  void describe(char* buffer, std::size_t size) const noexcept;
  PJRT_Error_Code code() const noexcept;

  // Throws Error{code, where, "CODE: message"} unless ok. Rethrows a std::bad_alloc of the plugin.
  void throw_if_error(ErrorCode code, const char* where) const;

 private:
  void destroy() noexcept;

  const Api* api_ = nullptr;
  PJRT_Error* error_ = nullptr;
  const char* function_ = "";
  const char* not_given_ = nullptr;
  bool has_thrown_ = false;
  std::exception_ptr exception_;  // null for an exception of another C++ library
};

// Returns "INVALID_ARGUMENT" and so on.
const char* error_code_name(PJRT_Error_Code code) noexcept;

}  // namespace cyxla::pjrt
