// SPDX-License-Identifier: Apache-2.0
#include "pjrt/handle.h"

namespace cyxla::pjrt {
namespace {

// A failing destroy leaves nothing to do but to drop its error.
void drop(const Api& api, PJRT_Error* error) noexcept { const Status status(api, error, ""); }

}  // namespace

template <>
void destroy(const Api& api, PJRT_Event* event) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Event_Destroy, args);
  args.event = event;
  drop(api, api.table().PJRT_Event_Destroy(&args));
}

template <>
void destroy(const Api& api, PJRT_Client* client) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Client_Destroy, args);
  args.client = client;
  drop(api, api.table().PJRT_Client_Destroy(&args));
}

template <>
void destroy(const Api& api, PJRT_Buffer* buffer) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Buffer_Destroy, args);
  args.buffer = buffer;
  drop(api, api.table().PJRT_Buffer_Destroy(&args));
}

template <>
void destroy(const Api& api, PJRT_Executable* executable) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Executable_Destroy, args);
  args.executable = executable;
  drop(api, api.table().PJRT_Executable_Destroy(&args));
}

template <>
void destroy(const Api& api, PJRT_LoadedExecutable* executable) noexcept {
  CYXLA_PJRT_ARGS(PJRT_LoadedExecutable_Destroy, args);
  args.executable = executable;
  drop(api, api.table().PJRT_LoadedExecutable_Destroy(&args));
}

}  // namespace cyxla::pjrt
