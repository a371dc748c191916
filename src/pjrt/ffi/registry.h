// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "pjrt/api.h"
#include "pjrt/ffi/metadata.h"

namespace cyxla::pjrt {

// How a handler was registered with the plugin.
struct FfiRegistration {
  FfiVersion handler_version;
  FfiVersion plugin_version;
  bool adapted = false;  // registered through a function that reports the plugin's version
};

// The custom-call handlers registered with a plugin. The plugin reports success for a handler of a
// newer FFI version and for a second handler of the same name, but drops both, so the registry
// compares versions and remembers names. Owned by the runtime; any thread may call it.
class FfiRegistry {
 public:
  // `api` must outlive the registry.
  explicit FfiRegistry(const Api& api) noexcept : api_(api) {}

  // Registers a handler with the plugin under a target name. `platform` is the FFI's own name
  // ("Host", "CUDA"). The handler must stay in memory for the life of the process, because plugins
  // cannot unregister it. Registering the same handler again is harmless. Throws Error:
  // kUnsupported when the plugin lacks the FFI extension or the handler's version cannot be
  // adapted, kArgument when the name has another handler, kPlugin when the plugin refuses or drops
  // the handler.
  FfiRegistration register_handler(const std::string& target, const std::string& platform,
                                   void* handler);

 private:
  struct Target {
    ffi::Handler handler;
    FfiRegistration registration;
  };

  const FfiHost& host(const std::string& target, const std::string& platform);
  void give(const std::string& target, const std::string& platform, ffi::Handler handler) const;
  void verify(const std::string& target, const std::string& platform, ffi::Handler handler) const;

  const Api& api_;
  std::mutex mutex_;                                               // guards the two below
  std::optional<FfiHost> host_;                                    // set once the plugin was probed
  std::map<std::pair<std::string, std::string>, Target> targets_;  // by platform and name
};

}  // namespace cyxla::pjrt
