// SPDX-License-Identifier: Apache-2.0
#include "pjrt/event.h"

namespace cyxla::pjrt {

Status await(const Api& api, const Event& event) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Event_Await, args);
  args.event = event.get();
  return guarded_call(api, CYXLA_SLOT(PJRT_Event_Await), args);
}

}  // namespace cyxla::pjrt
