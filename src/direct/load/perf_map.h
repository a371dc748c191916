// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace cyxla::direct {

// The file that gives the profiler perf the names of code made at run time, /tmp/perf-<pid>.map.
// It is written only if CYXLA_PERF_MAP=1 is in the environment. Failures to write are ignored. Used
// by one thread.
class [[nodiscard]] PerfMap {
 public:
  PerfMap() noexcept;
  PerfMap(const PerfMap&) = delete;
  PerfMap& operator=(const PerfMap&) = delete;
  ~PerfMap();

  void add(const void* address, std::size_t size_bytes, std::string_view name) noexcept;

 private:
  int file_ = -1;
};

}  // namespace cyxla::direct
