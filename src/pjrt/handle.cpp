// SPDX-License-Identifier: Apache-2.0
#include "pjrt/handle.h"

namespace cyxla::pjrt {
namespace {

// Nothing useful can be done about a failing destroy, so its error is dropped.
template <typename Function, typename Args>
void call_and_drop(const Api& api, Slot<Function> slot, Args& args) noexcept {
  static_cast<void>(guarded_call(api, slot, args));
}

}  // namespace

template <>
void destroy(const Api& api, PJRT_Event* event) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Event_Destroy, args);
  args.event = event;
  call_and_drop(api, CYXLA_SLOT(PJRT_Event_Destroy), args);
}

template <>
void destroy(const Api& api, PJRT_Client* client) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Client_Destroy, args);
  args.client = client;
  call_and_drop(api, CYXLA_SLOT(PJRT_Client_Destroy), args);
}

template <>
void destroy(const Api& api, PJRT_Buffer* buffer) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Buffer_Destroy, args);
  args.buffer = buffer;
  call_and_drop(api, CYXLA_SLOT(PJRT_Buffer_Destroy), args);
}

template <>
void destroy(const Api& api, PJRT_Executable* executable) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Executable_Destroy, args);
  args.executable = executable;
  call_and_drop(api, CYXLA_SLOT(PJRT_Executable_Destroy), args);
}

template <>
void destroy(const Api& api, PJRT_LoadedExecutable* executable) noexcept {
  CYXLA_PJRT_ARGS(PJRT_LoadedExecutable_Destroy, args);
  args.executable = executable;
  call_and_drop(api, CYXLA_SLOT(PJRT_LoadedExecutable_Destroy), args);
}

}  // namespace cyxla::pjrt
