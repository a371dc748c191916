// SPDX-License-Identifier: Apache-2.0
#include "pjrt/api.h"

#include <tuple>
#include <vector>

#include "base/error.h"

namespace cyxla::pjrt {
namespace {

// cyxla cannot work without these functions. All of them are older than API version 0.40.
constexpr auto kRequired = std::make_tuple(
    CYXLA_SLOT(PJRT_Error_Destroy), CYXLA_SLOT(PJRT_Error_Message), CYXLA_SLOT(PJRT_Error_GetCode),
    CYXLA_SLOT(PJRT_Plugin_Initialize), CYXLA_SLOT(PJRT_Plugin_Attributes),
    CYXLA_SLOT(PJRT_Event_Destroy), CYXLA_SLOT(PJRT_Event_Await), CYXLA_SLOT(PJRT_Client_Create),
    CYXLA_SLOT(PJRT_Client_Destroy), CYXLA_SLOT(PJRT_Client_PlatformName),
    CYXLA_SLOT(PJRT_Client_PlatformVersion), CYXLA_SLOT(PJRT_Client_AddressableDevices),
    CYXLA_SLOT(PJRT_Client_Compile), CYXLA_SLOT(PJRT_Client_BufferFromHostBuffer),
    CYXLA_SLOT(PJRT_Executable_Destroy), CYXLA_SLOT(PJRT_Executable_NumOutputs),
    CYXLA_SLOT(PJRT_Executable_OutputElementTypes), CYXLA_SLOT(PJRT_Executable_OutputDimensions),
    CYXLA_SLOT(PJRT_LoadedExecutable_Destroy), CYXLA_SLOT(PJRT_LoadedExecutable_GetExecutable),
    CYXLA_SLOT(PJRT_LoadedExecutable_Execute), CYXLA_SLOT(PJRT_Buffer_Destroy),
    CYXLA_SLOT(PJRT_Buffer_ToHostBuffer), CYXLA_SLOT(PJRT_Buffer_ReadyEvent));

std::string version_text(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

Api::Api(const PJRT_Api* table, const std::string& source) : table_(table), source_(source) {
  if (table == nullptr) {
    throw Error(ErrorCode::kPlugin, "",
                source + " is not a usable PJRT plugin: GetPjrtApi returned null");
  }
  constexpr std::size_t kVersionEnd = offsetof(PJRT_Api, pjrt_api_version) +
                                      offsetof(PJRT_Api_Version, minor_version) + sizeof(int);
  if (table->struct_size < kVersionEnd) {
    throw Error(ErrorCode::kPlugin, "",
                source + " is not a usable PJRT plugin: its function table has " +
                    std::to_string(table->struct_size) +
                    " bytes, too few to hold its version; install a newer plugin");
  }
  version_ = {table->pjrt_api_version.major_version, table->pjrt_api_version.minor_version};
  if (version_.major != PJRT_API_MAJOR) {
    throw Error(ErrorCode::kPlugin, "",
                source + " has PJRT API version " + version_text(version_.major, version_.minor) +
                    ", cyxla needs major version " + std::to_string(PJRT_API_MAJOR) +
                    " (it was built with " + version_text(PJRT_API_MAJOR, PJRT_API_MINOR) +
                    "); install a plugin of that major version");
  }
  std::string missing;
  std::apply(
      [&](const auto&... slot) {
        ((has(slot) ? void()
                    : void(missing += (missing.empty() ? "" : ", ") + std::string(slot.name))),
         ...);
      },
      kRequired);
  if (!missing.empty()) {
    throw Error(ErrorCode::kPlugin, "",
                source + " (PJRT API version " + version_text(version_.major, version_.minor) +
                    ") lacks functions that cyxla needs: " + missing + "; install a newer plugin");
  }
}

const PJRT_Extension_Base* Api::extension(PJRT_Extension_Type type) const noexcept {
  const PJRT_Extension_Base* extension = table_->extension_start;
  while (extension != nullptr && number_of(extension->type) != number_of(type)) {
    extension = extension->next;
  }
  return extension;
}

void Api::throw_missing(const char* function) const {
  throw Error(ErrorCode::kUnsupported, function,
              "the plugin " + source_ + " (PJRT API version " +
                  version_text(version_.major, version_.minor) +
                  ") does not have this function; install a newer plugin");
}

}  // namespace cyxla::pjrt
