// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pjrt/api.h"

namespace cyxla::pjrt {

// The client's first addressable device; the client owns it. Throws Error (kPlugin) when there is
// none.
PJRT_Device* first_addressable_device(const Api& api, PJRT_Client* client);

}  // namespace cyxla::pjrt
