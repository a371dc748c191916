// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>

#include "memory.h"

namespace cyxla::soak {

// Prints the growth between two measurements and returns whether it is within the limits.
inline bool is_flat(const char* what, const Memory& before, const Memory& after,
                    std::int64_t allowed_allocated_bytes, std::int64_t allowed_resident_bytes) {
  constexpr double kMiB = 1024 * 1024;
  const std::int64_t resident = after.resident_bytes - before.resident_bytes;
  const std::int64_t allocated = after.allocated_bytes - before.allocated_bytes;
  const bool flat = resident <= allowed_resident_bytes && allocated <= allowed_allocated_bytes;
  std::printf(
      "  %s: resident %.1f -> %.1f MiB (%+.3f, allowed %.3f), allocated %+lld bytes (allowed "
      "%lld)%s\n",
      what, static_cast<double>(before.resident_bytes) / kMiB,
      static_cast<double>(after.resident_bytes) / kMiB, static_cast<double>(resident) / kMiB,
      static_cast<double>(allowed_resident_bytes) / kMiB, static_cast<long long>(allocated),
      static_cast<long long>(allowed_allocated_bytes), flat ? "" : ": NOT FLAT");
  std::fflush(stdout);
  return flat;
}

}  // namespace cyxla::soak
