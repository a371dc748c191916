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

// How a handler was given to the plugin.
struct FfiRegistration {
  FfiVersion handler_version;
  FfiVersion plugin_version;
  bool adapted = false;  // through a function that answers with the plugin's version
};

// The custom-call handlers that were given to a plugin. The plugin itself reports success for a
// handler of a newer version than its own, and for a second one of the same name, and drops both:
// so versions are compared here and names kept. Owned by the runtime; any thread may call it.
class FfiRegistry {
 public:
  // `api` must outlive the registry.
  explicit FfiRegistry(const Api& api) noexcept : api_(api) {}

  // Makes a handler known to the plugin under a target name. `platform` is the FFI's own name
  // ("Host", "CUDA"). The handler must stay in memory for the life of the process: nothing can be
  // unregistered. The same handler again is harmless. Throws Error: kUnsupported when the plugin
  // has no FFI extension or the handler's version cannot be made to fit, kArgument when the name
  // has another handler, kPlugin when the plugin refuses it or drops it.
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
  std::optional<FfiHost> host_;                                    // once the plugin was asked
  std::map<std::pair<std::string, std::string>, Target> targets_;  // by platform and name
};

}  // namespace cyxla::pjrt
