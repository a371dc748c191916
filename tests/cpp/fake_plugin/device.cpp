// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "client.h"
#include "functions.h"

namespace fake_plugin::implementation {

PJRT_Error* device_get_description(PJRT_Device_GetDescription_Args& args) {
  args.device_description = &args.device->description;
  return nullptr;
}

PJRT_Error* device_description_kind(PJRT_DeviceDescription_Kind_Args& args) {
  constexpr std::string_view kKind = "fake device";
  args.device_kind = kKind.data();
  args.device_kind_size = kKind.size();
  return nullptr;
}

PJRT_Error* device_description_debug_string(PJRT_DeviceDescription_DebugString_Args& args) {
  constexpr std::string_view kText = "FakeDevice(id=0)";
  args.debug_string = kText.data();
  args.debug_string_size = kText.size();
  return nullptr;
}

PJRT_Error* device_description_attributes(PJRT_DeviceDescription_Attributes_Args& args) {
  static PJRT_NamedValue capability = {};
  capability.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  capability.name = "compute_capability";
  capability.name_size = 18;
  capability.type = PJRT_NamedValue_kString;
  capability.string_value = "9.0";
  capability.value_size = 3;
  args.attributes = &capability;
  args.num_attributes = 1;
  return nullptr;
}

}  // namespace fake_plugin::implementation
