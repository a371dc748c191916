// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/error.h"
#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {

class Api;

// The result of a PJRT call: null means success. Owns the PJRT_Error and destroys it, whichever way
// the scope is left. Must not outlive the plugin's table; moves between threads freely.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(const Api& api, PJRT_Error* error) noexcept : api_(&api), error_(error) {}
  Status(Status&& other) noexcept
      : api_(other.api_), error_(std::exchange(other.error_, nullptr)) {}
  Status& operator=(Status&& other) noexcept;
  ~Status() { destroy(); }

  bool ok() const noexcept { return error_ == nullptr; }

  // The plugin's text, valid while this object lives. Empty when ok.
  std::string message() const;
  // Copies the text, cut to `size` bytes with its final zero; allocates nothing.
  void copy_message(char* buffer, std::size_t size) const noexcept;
  PJRT_Error_Code code() const noexcept;

  // Throws Error{code, where, "CODE: message"} unless ok.
  void throw_if_error(ErrorCode code, const char* where) const;

 private:
  void destroy() noexcept;

  const Api* api_ = nullptr;
  PJRT_Error* error_ = nullptr;
};

// "INVALID_ARGUMENT" and so on.
const char* error_code_name(PJRT_Error_Code code) noexcept;

}  // namespace cyxla::pjrt
