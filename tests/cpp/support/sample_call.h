// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "support/runtime_test.h"

namespace cyxla::test {

// A program with its own inputs: an aligned one, a misaligned one and an empty one.
class SampleCall {
 public:
  static constexpr const char* kCode =
      "input F32[3]\n"
      "input F32[3]\n"
      "input F32[0]\n"
      "output F32[3] add 0 1\n"
      "output F32[] sum 0\n"
      "output F32[0] copy 2\n";

  // Returns "" or what went wrong.
  std::string run(const cyxla_program_spec& spec, int zero_copy) {
    added.assign({-1, -1, -1});
    if (runtime::execute(&spec, inputs.data(), outputs.data(), zero_copy) != 0) {
      return last_message();
    }
    return check();
  }
  std::string check() const {
    return added.values() == std::vector<float>{11, 22, 33} && sum.values() == std::vector<float>{6}
               ? ""
               : "wrong results";
  }

  Array<float> left{{1, 2, 3}};
  Array<float> right{{10, 20, 30}, 4};
  Array<float> added{{0, 0, 0}};
  Array<float> sum{{0}};
  std::vector<cyxla_input> inputs = {left.input(PJRT_Buffer_Type_F32),
                                     right.input(PJRT_Buffer_Type_F32),
                                     {nullptr, PJRT_Buffer_Type_F32, 0}};
  std::vector<void*> outputs = {added.data(), sum.data(), nullptr};
};

}  // namespace cyxla::test
