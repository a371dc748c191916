// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "functions.h"

namespace fake_plugin {

// A failure and its text, which lives as long as the plugin.
struct Failure {
  PJRT_Error_Code code = PJRT_Error_Code_OK;
  const char* message = nullptr;
};

// Returns a copy of a text that lives as long as the plugin.
const char* keep_text(const std::string& text);

enum class FailureOf {
  kCall,
  kEvent,
  kHollowCall,  // reports success without doing anything
  kNullCall,    // reports success, a count of one and a null pointer
  kException,   // throws a std::runtime_error with the text, or an int when it is empty
};

// Plans a failure of the nth occurrence from now, or of every one if nth is 0. Without `function`
// it applies to any function.
void plan_failure(FailureOf what, std::optional<Function> function, std::uint64_t nth,
                  Failure failure);
// Counts an occurrence and returns its planned failure, if any.
std::optional<Failure> next_failure(FailureOf what, Function function) noexcept;
std::uint64_t failures() noexcept;
void reset_failures();

}  // namespace fake_plugin
