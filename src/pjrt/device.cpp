// SPDX-License-Identifier: Apache-2.0
#include "pjrt/device.h"

#include "base/error.h"

namespace cyxla::pjrt {

PJRT_Device* first_addressable_device(const Api& api, PJRT_Client* client) {
  CYXLA_PJRT_ARGS(PJRT_Client_AddressableDevices, args);
  args.client = client;
  checked_call(api, CYXLA_SLOT(PJRT_Client_AddressableDevices), args, ErrorCode::kPlugin);
  if (args.num_addressable_devices == 0 || args.addressable_devices == nullptr ||
      args.addressable_devices[0] == nullptr) {
    throw Error(ErrorCode::kPlugin, "PJRT_Client_AddressableDevices",
                "the plugin " + api.source() +
                    " found no device; set CYXLA_PLATFORM=cpu to use a CPU plugin");
  }
  return args.addressable_devices[0];
}

}  // namespace cyxla::pjrt
