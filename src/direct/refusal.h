// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace cyxla::direct {

// Why a program is left to the plugin: one plain-English clause such as "step 3 is a sort, which
// only the plugin runs". Not an error of the user's.
class Refusal : public std::runtime_error {
 public:
  explicit Refusal(const std::string& reason) : std::runtime_error(reason) {}
};

}  // namespace cyxla::direct
