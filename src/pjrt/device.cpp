// SPDX-License-Identifier: Apache-2.0
#include "pjrt/device.h"

#include "base/error.h"

namespace cyxla::pjrt {
namespace {

PJRT_Client_AddressableDevices_Args addressable_devices(const Api& api, PJRT_Client* client) {
  CYXLA_PJRT_ARGS(PJRT_Client_AddressableDevices, args);
  args.client = client;
  checked_call(api, CYXLA_SLOT(PJRT_Client_AddressableDevices), args, ErrorCode::kPlugin);
  if (args.num_addressable_devices == 0 || args.addressable_devices == nullptr ||
      args.addressable_devices[0] == nullptr) {
    throw Error(ErrorCode::kPlugin, "PJRT_Client_AddressableDevices",
                "the plugin " + api.source() +
                    " found no device; set CYXLA_PLATFORM=cpu to use a CPU plugin");
  }
  return args;
}

// Returns null when the plugin does not describe the device.
PJRT_DeviceDescription* description_of(const Api& api, PJRT_Device* device) {
  CYXLA_PJRT_ARGS(PJRT_Device_GetDescription, args);
  args.device = device;
  const bool is_described = api.has(CYXLA_SLOT(PJRT_Device_GetDescription)) &&
                            api.call(CYXLA_SLOT(PJRT_Device_GetDescription), args).ok();
  return is_described ? args.device_description : nullptr;
}

}  // namespace

PJRT_Device* first_addressable_device(const Api& api, PJRT_Client* client) {
  return addressable_devices(api, client).addressable_devices[0];
}

DeviceDescription describe_device(const Api& api, PJRT_Client* client) {
  const PJRT_Client_AddressableDevices_Args devices = addressable_devices(api, client);
  DeviceDescription result;
  result.num_addressable = devices.num_addressable_devices;
  PJRT_DeviceDescription* description = description_of(api, devices.addressable_devices[0]);
  if (description == nullptr) {
    return result;
  }
  CYXLA_PJRT_ARGS(PJRT_DeviceDescription_Kind, kind);
  kind.device_description = description;
  if (api.has(CYXLA_SLOT(PJRT_DeviceDescription_Kind)) &&
      api.call(CYXLA_SLOT(PJRT_DeviceDescription_Kind), kind).ok() && kind.device_kind != nullptr) {
    result.kind.assign(kind.device_kind, kind.device_kind_size);
  }
  CYXLA_PJRT_ARGS(PJRT_DeviceDescription_DebugString, text);
  text.device_description = description;
  if (api.has(CYXLA_SLOT(PJRT_DeviceDescription_DebugString)) &&
      api.call(CYXLA_SLOT(PJRT_DeviceDescription_DebugString), text).ok() &&
      text.debug_string != nullptr) {
    result.debug_string.assign(text.debug_string, text.debug_string_size);
  }
  CYXLA_PJRT_ARGS(PJRT_DeviceDescription_Attributes, attributes);
  attributes.device_description = description;
  if (api.has(CYXLA_SLOT(PJRT_DeviceDescription_Attributes)) &&
      api.call(CYXLA_SLOT(PJRT_DeviceDescription_Attributes), attributes).ok() &&
      attributes.attributes != nullptr) {
    result.attributes = from_pjrt(attributes.attributes, attributes.num_attributes);
  }
  return result;
}

}  // namespace cyxla::pjrt
