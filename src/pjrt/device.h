// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "pjrt/api.h"
#include "pjrt/named_value.h"

namespace cyxla::pjrt {

// Returns the client's first addressable device, which the client owns. Throws Error (kPlugin) when
// the client has none.
PJRT_Device* first_addressable_device(const Api& api, PJRT_Client* client);

// What the plugin reports about a device. Generated code may depend on all of it, for example on
// the compute capability of a GPU among the attributes. Fields that the plugin does not report are
// empty.
struct DeviceDescription {
  std::string kind;
  std::string debug_string;
  NamedValues attributes;
  std::size_t num_addressable = 0;  // devices of the client
};

// Describes the first addressable device. Throws Error (kPlugin) when the client has none.
DeviceDescription describe_device(const Api& api, PJRT_Client* client);

}  // namespace cyxla::pjrt
