// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pjrt/client.h"

namespace cyxla::runtime {

// What a client can do without copies, found by trying it.
struct Capabilities {
  // A buffer can be a view of host memory, and the device sees what the host writes there.
  bool aliased_inputs = false;
  // The host can read a buffer's memory at its own address.
  bool inplace_outputs = false;
};

Capabilities probe_capabilities(const pjrt::Client& client);

}  // namespace cyxla::runtime
