// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/registry.h"

#include <cstddef>

#include "base/error.h"
#include "pjrt/ffi/adapter.h"
#include "pjrt/status.h"

namespace cyxla::pjrt {
namespace {

constexpr const char* kProbeTarget = "cyxla_ffi_version_probe";

// The PJRT FFI extension, declared from its published ABI: packages do not ship its header.
struct RegisterHandlerArgs {
  std::size_t struct_size;
  const char* target_name;
  std::size_t target_name_size;
  void* handler;
  const char* platform_name;
  std::size_t platform_name_size;
  std::uint32_t traits;
};

struct FfiExtension {
  PJRT_Extension_Base base;
  void* type_register;
  void* user_data_add;
  PJRT_Error* (*register_handler)(RegisterHandlerArgs* args);
};

static_assert(offsetof(FfiExtension, register_handler) == 40);

// Throws when the plugin cannot call the handler correctly, adapted or not.
void check_versions(const std::string& target, FfiVersion handler, FfiVersion plugin,
                    const std::string& source) {
  const std::string versions = "the handler of the custom-call target " + target +
                               " was built for XLA FFI " + to_string(handler) + ", the plugin " +
                               source + " has " + to_string(plugin);
  if (handler.major != plugin.major) {
    throw Error(ErrorCode::kUnsupported, "",
                versions + ": the layouts of major versions differ; use a plugin and a" +
                    " handler of the same major version");
  }
  if (handler.minor > plugin.minor && handler.minor > kNewestKnownFfiMinor) {
    throw Error(ErrorCode::kUnsupported, "",
                versions + ", and cyxla adapts handlers only up to 0." +
                    std::to_string(kNewestKnownFfiMinor) + "; use a newer plugin, or build the" +
                    " handler with older headers (an older jaxlib, if it is jaxlib's)");
  }
}

}  // namespace

FfiRegistration FfiRegistry::register_handler(const std::string& target,
                                              const std::string& platform, void* address) {
  const auto handler = reinterpret_cast<ffi::Handler>(address);
  if (handler == nullptr) {
    throw Error(ErrorCode::kArgument, "",
                "the handler of the custom-call target " + target + " is null");
  }
  const std::lock_guard lock(mutex_);
  const auto key = std::make_pair(platform, target);
  if (const auto known = targets_.find(key); known != targets_.end()) {
    if (known->second.handler == handler) {
      return known->second.registration;
    }
    throw Error(ErrorCode::kArgument, "",
                "the custom-call target " + target +
                    " already has another handler for the platform " + platform +
                    "; choose another name");
  }
  const FfiHost& plugin = host(target, platform);
  FfiRegistration registration = {handler_version(plugin, target, handler), plugin.version};
  check_versions(target, registration.handler_version, plugin.version, api_.source());
  registration.adapted = registration.handler_version.minor > plugin.version.minor;
  const ffi::Handler given =
      registration.adapted ? adapt_ffi_handler(handler, plugin.version.minor) : handler;
  give(target, platform, given);
  verify(target, platform, given);
  targets_.emplace(key, Target{handler, registration});
  return registration;
}

// A plugin reveals its version only to a handler that it asks for metadata.
const FfiHost& FfiRegistry::host(const std::string& target, const std::string& platform) {
  if (!host_) {
    FfiProbe probe;
    try {
      give(kProbeTarget, platform, probe_handler);
    } catch (const Error& error) {
      throw Error(error.code(), "",
                  "cannot register the custom-call target " + target + ": " + error.what());
    }
    host_ = probe.host;
  }
  if (!host_) {
    throw Error(
        ErrorCode::kUnsupported, "",
        "cannot register the custom-call target " + target + ": the plugin " + api_.source() +
            " does not check the version of handlers, so it could call them wrongly; use another"
            " plugin");
  }
  return *host_;
}

void FfiRegistry::give(const std::string& target, const std::string& platform,
                       ffi::Handler handler) const {
  const auto* extension =
      reinterpret_cast<const FfiExtension*>(api_.extension(PJRT_Extension_Type_FFI));
  constexpr std::size_t kNeeded = offsetof(FfiExtension, register_handler) + sizeof(void*);
  if (extension == nullptr || extension->base.struct_size < kNeeded ||
      extension->register_handler == nullptr) {
    throw Error(ErrorCode::kUnsupported, "",
                "the plugin " + api_.source() + " has no FFI extension; use another plugin");
  }
  RegisterHandlerArgs args = {};
  args.struct_size = offsetof(RegisterHandlerArgs, traits) + sizeof args.traits;
  args.target_name = target.data();
  args.target_name_size = target.size();
  args.handler = reinterpret_cast<void*>(handler);
  args.platform_name = platform.data();
  args.platform_name_size = platform.size();
  const Status status(api_, extension->register_handler(&args), "PJRT_FFI_Register_Handler");
  if (!status.ok()) {
    throw Error(ErrorCode::kPlugin, "PJRT_FFI_Register_Handler",
                "the plugin refused the custom-call target " + target + ": " + status.message());
  }
}

// Registers once more through the FFI itself, which reports what PJRT hides: whether the handler
// was dropped, and why. Registering the same handler twice is allowed.
void FfiRegistry::verify(const std::string& target, const std::string& platform,
                         ffi::Handler handler) const {
  constexpr std::size_t kNeeded = offsetof(ffi::Api, handler_register) + sizeof(void*);
  const ffi::Api& table = *host_->api;
  if (host_->version.minor > kNewestKnownFfiMinor || table.struct_size < kNeeded ||
      table.handler_register == nullptr) {
    return;  // check_versions() has decided
  }
  ffi::HandlerRegisterArgs args = {};
  args.struct_size = ffi::kHandlerRegisterArgsSize;
  args.name = {target.data(), target.size()};
  args.platform = {platform.data(), platform.size()};
  args.execute = handler;
  if (ffi::Error* const error = table.handler_register(&args)) {
    throw Error(ErrorCode::kPlugin, "XLA_FFI_Handler_Register",
                "the plugin " + api_.source() + " did not keep the custom-call target " + target +
                    ": " + take_message(*host_, error));
  }
}

}  // namespace cyxla::pjrt
