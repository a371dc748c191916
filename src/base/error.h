// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace cyxla {

// The kind of failure; each maps to one exception class in Python. The numbers are those of
// CYXLA_ERROR_INTERNAL and the others in cyxla.h, where 0 stands for no error.
enum class ErrorCode {
  kInternal = 1,
  kArgument,
  kPlugin,
  kCompile,
  kExecution,
  kUnsupported,
  kShutdown,
  kFork,
};

// The plural suffix for a count, for messages.
constexpr const char* plural(std::size_t count) noexcept { return count == 1 ? "" : "s"; }

// "1 input", "2 inputs".
inline std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + ' ' + noun + plural(count);
}

// The only exception of the set-up paths. `where` names the function that failed (often a PJRT
// function); what() is "where: message", or the message alone.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string where, const std::string& message)
      : std::runtime_error(where.empty() ? message : where + ": " + message),
        code_(code),
        where_(std::move(where)) {}

  ErrorCode code() const noexcept { return code_; }
  const std::string& where() const noexcept { return where_; }

 private:
  ErrorCode code_;
  std::string where_;
};

}  // namespace cyxla
