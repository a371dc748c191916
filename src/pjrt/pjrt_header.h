// SPDX-License-Identifier: Apache-2.0
// The one place that includes the PJRT header. With -Wpedantic g++ 12 rejects it (each member of
// its table is named like its type), and no pragma helps, so code that includes this is compiled
// without that flag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <pjrt_c_api.h>

namespace cyxla::pjrt {

// The number of an enumerator that a plugin wrote. A newer plugin's may be none that the header
// knows, and reading it as the enumeration is undefined then.
template <typename Enumeration>
std::underlying_type_t<Enumeration> number_of(const Enumeration& written) noexcept {
  std::underlying_type_t<Enumeration> number{};
  std::memcpy(&number, &written, sizeof number);
  return number;
}

}  // namespace cyxla::pjrt
