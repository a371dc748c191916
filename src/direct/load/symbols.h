// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cyxla::direct {

// The functions of the C and mathematics library that kernels call, as the plugin itself is bound
// to them. The C library has several versions of some (log, pow, exp, ...) that differ in their
// results for special values, so looking them up by name alone gives others. Made once for a
// plugin; immutable, so any thread may read it.
class ExternalSymbols {
 public:
  // None: only kernels without external symbols can be loaded.
  ExternalSymbols() = default;

  // Those of a plugin that this process has loaded from `path`. None when it has not, and on
  // systems other than Linux on x86-64 with the GNU C library.
  static ExternalSymbols of_plugin(const std::string& path);

  // Throws Refusal for a function that the plugin does not take from the C library, or that is not
  // known to be free of effects.
  void* address(std::string_view name) const;

 private:
  std::map<std::string, void*, std::less<>> addresses_;
};

}  // namespace cyxla::direct
