// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pjrt/handle.h"

namespace cyxla::pjrt {

// Waits until the event is complete and gives the error it completed with. Any thread; holds no
// lock of ours.
Status await(const Api& api, const Event& event) noexcept;

}  // namespace cyxla::pjrt
