// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pjrt/handle.h"

namespace cyxla::pjrt {

// Waits for the event and returns the error it completed with. Any thread; holds no lock of
// cyxla's.
Status await(const Api& api, const Event& event) noexcept;

}  // namespace cyxla::pjrt
