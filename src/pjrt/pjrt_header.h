// SPDX-License-Identifier: Apache-2.0
// The only file that includes the PJRT header. g++ 12 rejects the header under -Wpedantic (each
// member of its table has the name of its type) and ignores pragmas for that, so code that includes
// this file is compiled without that flag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <pjrt_c_api.h>

namespace cyxla::pjrt {

// Reads an enumerator written by a plugin as a number. A newer plugin may write one that the header
// does not know; reading it as the enumeration would be undefined.
template <typename Enumeration>
std::underlying_type_t<Enumeration> number_of(const Enumeration& written) noexcept {
  std::underlying_type_t<Enumeration> number{};
  std::memcpy(&number, &written, sizeof number);
  return number;
}

}  // namespace cyxla::pjrt
