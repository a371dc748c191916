// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pjrt/client.h"

namespace cyxla::runtime {

// What a client can do without copies, found by doing it once.
struct Capabilities {
  // A buffer can be a view of host memory, and what the host writes there is what the device reads.
  bool aliased_inputs = false;
  // A buffer's memory can be read by the host at its own address.
  bool inplace_outputs = false;
};

Capabilities probe_capabilities(const pjrt::Client& client);

}  // namespace cyxla::runtime
