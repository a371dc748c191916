// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pjrt/executable.h"
#include "pjrt/handle.h"
#include "pjrt/named_value.h"

namespace cyxla::pjrt {

// A plugin's client. Every object made from it must be destroyed first. Any thread may use it.
class [[nodiscard]] Client {
 public:
  // Throws Error (kPlugin) with the plugin's message.
  static Client create(const Api& api, const NamedValues& options);

  const Api& api() const noexcept { return *api_; }
  PJRT_Client* get() const noexcept { return client_.get(); }
  // As the plugin reports them: "cpu", "cuda".
  const std::string& platform_name() const noexcept { return platform_name_; }
  const std::string& platform_version() const noexcept { return platform_version_; }
  // The device that programs run on: the first addressable one.
  PJRT_Device* device() const noexcept { return device_; }

  // Compiles a program in `format` ("mlir": StableHLO as portable artifact or text). Throws Error
  // (kCompile).
  LoadedExecutable compile(std::string_view code, std::string_view format,
                           std::string_view compile_options) const;
  // Loads the bytes of LoadedExecutable::serialize(), in any process on a machine of the same kind.
  // They hold machine code and must come from the same build of the plugin. Throws Error
  // (kCompile).
  LoadedExecutable deserialize(std::string_view serialized) const;

 private:
  Client(const Api& api, PJRT_Client* client);

  const Api* api_;
  Handle<PJRT_Client> client_;
  std::string platform_name_;
  std::string platform_version_;
  PJRT_Device* device_ = nullptr;
};

}  // namespace cyxla::pjrt
