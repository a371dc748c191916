// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>

#include "pjrt/api.h"
#include "pjrt/named_value.h"

namespace cyxla::pjrt {

// A loaded and initialized PJRT plugin: its table and its attributes. Made once per library and
// never unloaded; immutable afterwards, so any thread may read it.
class [[nodiscard]] Plugin {
 public:
  // Opens the library, finds GetPjrtApi, checks the table and calls PJRT_Plugin_Initialize. Throws
  // Error (kPlugin).
  static Plugin load(const std::string& path);

  const Api& api() const noexcept { return api_; }
  const NamedValues& attributes() const noexcept { return attributes_; }
  // Returns the newest StableHLO version that the plugin reads, if it reports one.
  std::optional<std::array<std::int64_t, 3>> stablehlo_version() const;

 private:
  explicit Plugin(Api api);

  Api api_;
  NamedValues attributes_;
};

}  // namespace cyxla::pjrt
