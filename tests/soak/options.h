// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace cyxla::soak {

// The soak's command line.
struct Options {
  std::string plugin;             // path of the library
  bool is_fake = false;           // the fake plugin of the C++ tests, with its own language
  std::int64_t pjrt_calls = 0;    // executions through PJRT, over all threads
  std::int64_t direct_calls = 0;  // executions of kernels called directly
  std::int64_t threads = 8;
  std::int64_t compilations = 0;  // while the calls of each route run
  std::int64_t cycles = 0;        // compile, call, destroy
  std::int64_t alive = 0;         // executables at once
  bool any_memory = false;        // under a tool that changes memory use
  bool leak_per_call = false;     // planted: must fail
  bool leak_per_compilation = false;
  bool wrong_result = false;
};

}  // namespace cyxla::soak
