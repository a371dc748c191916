// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace cyxla::test {

// Returns the message of the Error that `function` must throw with this code; otherwise fails the
// test.
template <typename Function>
std::string message_of(ErrorCode code, Function function) {
  try {
    static_cast<void>(function());
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace cyxla::test
