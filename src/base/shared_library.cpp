// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>

#include <utility>

#include "base/error.h"

namespace cyxla {

SharedLibrary::SharedLibrary(void* handle, std::string path)
    : handle_(handle), path_(std::move(path)) {}

SharedLibrary SharedLibrary::open(const std::string& path) {
  if (path.empty()) {
    // dlopen("") returns the main program.
    throw Error(ErrorCode::kPlugin, "",
                "the plugin path is empty; give the path of a PJRT plugin library");
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw Error(ErrorCode::kPlugin, "",
                "cannot load the plugin " + path + ": " + (reason == nullptr ? "unknown" : reason));
  }
  return {handle, path};
}

void* SharedLibrary::symbol(const char* name) const noexcept { return dlsym(handle_, name); }

}  // namespace cyxla
