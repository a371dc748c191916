// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::last_message;

class CheckingTest : public test::RuntimeTest {
 protected:
  // Calls once in every way with these bytes; returns the message of each failure, "" for success.
  std::array<std::string, 3> messages(const std::array<unsigned char, 3>& bytes) {
    const auto program = compile("input F32[0]\ninput PRED[3]\noutput PRED[3] copy 1\n", "model");
    flags_ = {1, 0, 1};
    const std::array<cyxla_input, 2> inputs = {
        {{nullptr, CYXLA_F32, 0}, {flags_.data(), CYXLA_PRED, 3}}};
    void* const output = result_.data();
    std::array<std::string, 3> found;
    cyxla_call* const prepared = prepare(&program->spec(), inputs.data(), &output, 1);
    EXPECT_NE(prepared, nullptr) << last_message();
    flags_ = bytes;
    found[0] = call(prepared) == 0 ? "" : last_message();
    discard(prepared);
    found[1] = execute(&program->spec(), inputs.data(), &output, 1) == 0 ? "" : last_message();
    cyxla_call* const second = prepare(&program->spec(), inputs.data(), &output, 0);
    found[2] = second != nullptr ? "" : last_message();
    discard(second);
    return found;
  }

  std::array<unsigned char, 3> flags_ = {};
  std::array<unsigned char, 3> result_ = {};
};

TEST_F(CheckingTest, RefusesBytesThatAreNoBools) {
  ::setenv("CYXLA_CHECK", "1", 1);
  for (const std::string& message : messages({1, 0, 200})) {
    EXPECT_EQ(message,
              "input 1 of the program model is bool, but element 2 has the byte 200; write 0 or 1");
  }
  for (const std::string& message : messages({1, 0, 1})) {
    EXPECT_EQ(message, "");
  }
}

TEST_F(CheckingTest, IsOffByDefault) {
  ::unsetenv("CYXLA_CHECK");
  for (const std::string& message : messages({1, 0, 2})) {
    EXPECT_EQ(message, "");
  }
}

TEST_F(CheckingTest, IsOffForAnythingButOne) {
  ::setenv("CYXLA_CHECK", "0", 1);
  for (const std::string& message : messages({1, 0, 2})) {
    EXPECT_EQ(message, "");
  }
}

}  // namespace
}  // namespace cyxla::runtime
