// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "pjrt/api.h"
#include "pjrt/named_value.h"

namespace cyxla::pjrt {

// The client's first addressable device; the client owns it. Throws Error (kPlugin) when there is
// none.
PJRT_Device* first_addressable_device(const Api& api, PJRT_Client* client);

// What the plugin says of a device, as far as it says anything: all that generated code may depend
// on, such as the compute capability of a GPU among the attributes.
struct DeviceDescription {
  std::string kind;
  std::string debug_string;
  NamedValues attributes;
  std::size_t num_addressable = 0;  // devices of the client
};

// Of the first addressable device. Throws Error (kPlugin) when there is none.
DeviceDescription describe_device(const Api& api, PJRT_Client* client);

}  // namespace cyxla::pjrt
