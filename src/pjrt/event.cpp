// SPDX-License-Identifier: Apache-2.0
#include "pjrt/event.h"

namespace cyxla::pjrt {

Status await(const Api& api, const Event& event) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Event_Await, args);
  args.event = event.get();
  return {api, api.table().PJRT_Event_Await(&args), "PJRT_Event_Await"};
}

}  // namespace cyxla::pjrt
