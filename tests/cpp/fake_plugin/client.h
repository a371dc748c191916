// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>

#include "object.h"
#include "worker.h"

struct PJRT_DeviceDescription {};

// Owned by its client.
struct PJRT_Device {
  PJRT_Client* client;
  PJRT_DeviceDescription description;
};

// Owned by the caller until Client_Destroy, which waits for the work of an asynchronous client.
struct PJRT_Client : fake_plugin::Object<PJRT_Client> {
  static constexpr std::size_t kMaxDevices = 4;

  std::array<PJRT_Device, kMaxDevices> devices;
  std::array<PJRT_Device*, kMaxDevices> device_list;
  std::size_t num_devices;
  std::optional<fake_plugin::Worker> worker;
  std::atomic<int> children = 0;  // live buffers and loaded executables
};

namespace fake_plugin {

// Runs a task immediately, or later on the client's thread when the plugin is asynchronous.
void run_task(PJRT_Client& client, Task& task);

}  // namespace fake_plugin
