// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cyxla::direct {

// The functions of the C and mathematics library that kernels may call, in the versions that the
// plugin is bound to. The C library has several versions of some (log, pow, exp, ...) with
// different results for special values, so a lookup by name alone can find another version. Made
// once for a plugin. Immutable, so any thread may read it.
class ExternalSymbols {
 public:
  // Without symbols: only kernels that call no function can be loaded.
  ExternalSymbols() = default;

  // The symbols of a plugin that this process has loaded from `path`. Without symbols if it has
  // not, and on systems other than x86-64 Linux with the GNU C library.
  static ExternalSymbols of_plugin(const std::string& path);

  // Throws Refusal for a function that the plugin does not import from the C library, or that may
  // have side effects.
  void* address(std::string_view name) const;

 private:
  std::map<std::string, void*, std::less<>> addresses_;
};

}  // namespace cyxla::direct
