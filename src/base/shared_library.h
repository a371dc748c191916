// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace cyxla {

// A library opened by path. Never closed, because plugins keep threads and static registries that
// point into their code. Any thread may use it.
class [[nodiscard]] SharedLibrary {
 public:
  // Resolves all symbols now and keeps the library's own symbols local. Throws Error (kPlugin) with
  // the loader's reason.
  static SharedLibrary open(const std::string& path);

  // The address of a symbol, or null.
  void* symbol(const char* name) const noexcept;
  const std::string& path() const noexcept { return path_; }

 private:
  SharedLibrary(void* handle, std::string path);

  void* handle_;
  std::string path_;
};

}  // namespace cyxla
