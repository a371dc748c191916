// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace cyxla::direct {

// What kind of obstacle a Refusal is. Code decides by it; the text is for people.
enum class Reason : std::uint8_t {
  kMalformed,         // the bytes break their format or contradict themselves
  kUnknownField,      // a newer plugin may have written it
  kUnsupportedField,  // a known field is set, or has a value that cyxla does not support
  kUnsupportedStep,   // only the plugin runs such a step
  kUnsupportedType,   // of the elements of an array
  kSignature,         // the inputs or outputs differ from the program's
  kBufferLayout,      // an array has no buffer of its own, or is not row-major
  kTooLarge,          // a direct call of so long or so large a program saves nothing
  kObjectFile,        // an object file has more than read-only code and data
  kSymbol,            // a kernel or a library function is missing, ambiguous or not allowed
  kMemory,            // the system gives no memory for code
  kPlatform,          // the machine, the system or the plugin cannot call kernels directly
  kDonation,          // the program is compiled to write into memory that callers donate
  kTrial,             // a trial run in a child process failed, or was not possible
  kDifference,        // the direct route and the plugin gave different results
  kUnverified,        // no test input reached a block whose results must be compared
};

// Why a program is left to the plugin: one plain-English clause such as "step 3 is a sort, which
// only the plugin runs". Users did nothing wrong.
class Refusal : public std::runtime_error {
 public:
  Refusal(Reason reason, const std::string& text) : std::runtime_error(text), reason_(reason) {}

  Reason reason() const noexcept { return reason_; }

 private:
  Reason reason_;
};

}  // namespace cyxla::direct
