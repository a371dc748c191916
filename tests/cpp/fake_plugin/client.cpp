// SPDX-License-Identifier: Apache-2.0
#include "client.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "error.h"
#include "settings.h"

namespace fake_plugin {
namespace {

constexpr std::string_view kPlatformName = "fake";
constexpr std::string_view kPlatformVersion = "fake plugin 1";

std::string describe(const PJRT_NamedValue& option) {
  std::string text(option.name, option.name_size);
  switch (option.type) {
    case PJRT_NamedValue_kString:
      return text + " string " + std::string(option.string_value, option.value_size) + "\n";
    case PJRT_NamedValue_kInt64:
      return text + " int64 " + std::to_string(option.int64_value) + "\n";
    case PJRT_NamedValue_kInt64List:
      text += " int64_list";
      for (std::size_t i = 0; i < option.value_size; ++i) {
        text += " " + std::to_string(option.int64_array_value[i]);
      }
      return text + "\n";
    case PJRT_NamedValue_kFloat:
      return text + " float " + std::to_string(option.float_value) + "\n";
    case PJRT_NamedValue_kBool:
      return text + " bool " + (option.bool_value ? "true" : "false") + "\n";
    default:
      return text + " unknown\n";
  }
}

// The options that real plugins know, with the type that they require.
PJRT_Error* check_option(const PJRT_NamedValue& option) {
  struct Known {
    std::string_view name;
    PJRT_NamedValue_Type type;
  };
  constexpr Known kKnown[] = {{"asynchronous", PJRT_NamedValue_kBool},
                              {"cpu_device_count", PJRT_NamedValue_kInt64},
                              {"memory_fraction", PJRT_NamedValue_kFloat},
                              {"allocator", PJRT_NamedValue_kString},
                              {"visible_devices", PJRT_NamedValue_kInt64List}};
  const std::string name(option.name, option.name_size);
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [&](const Known& known) { return known.name == name; });
  if (found == std::end(kKnown)) {
    return setting(FAKE_PLUGIN_IGNORE_OPTIONS) != 0
               ? nullptr
               : make_error(PJRT_Error_Code_INVALID_ARGUMENT,
                            "Unexpected option name passed to PJRT_Client_Create: %s",
                            name.c_str());
  }
  if (found->type != option.type) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "Option passed to PJRT_Client_Create with name %s has type index %d but "
                      "expected type index is %d",
                      name.c_str(), static_cast<int>(option.type), static_cast<int>(found->type));
  }
  return nullptr;
}

PJRT_Error* not_a_client() { return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a client"); }

}  // namespace

void run_task(PJRT_Client& client, Task& task) {
  if (setting(FAKE_PLUGIN_ASYNCHRONOUS) != 0) {
    client.worker->add(task);
  } else {
    task.run();
  }
}

namespace implementation {

PJRT_Error* client_create(PJRT_Client_Create_Args& args) {
  std::string record;
  for (std::size_t i = 0; i < args.num_options; ++i) {
    record += describe(args.create_options[i]);
  }
  record_text(FAKE_PLUGIN_CREATE_OPTIONS, record);
  const char* const pool_size = std::getenv("PJRT_NPROC");
  record_text(FAKE_PLUGIN_POOL_SIZE, pool_size == nullptr ? "" : pool_size);
  for (std::size_t i = 0; i < args.num_options; ++i) {
    if (PJRT_Error* error = check_option(args.create_options[i]); error != nullptr) {
      return error;
    }
  }
  PJRT_Client* client = PJRT_Client::make(FAKE_PLUGIN_CLIENT);
  client->num_devices = static_cast<std::size_t>(setting(FAKE_PLUGIN_NUM_DEVICES));
  for (std::size_t i = 0; i < PJRT_Client::kMaxDevices; ++i) {
    client->devices[i].client = client;
    client->device_list[i] = &client->devices[i];
  }
  client->worker.emplace();
  client->children = 0;
  args.client = client;
  return nullptr;
}

PJRT_Error* client_destroy(PJRT_Client_Destroy_Args& args) {
  if (args.client == nullptr || !PJRT_Client::check(args.client, "PJRT_Client_Destroy")) {
    return nullptr;
  }
  if (args.client->children != 0) {
    violation("PJRT_Client_Destroy", "buffers or loaded executables of the client are alive");
  }
  args.client->worker.reset();
  args.client->retire();
  return nullptr;
}

PJRT_Error* client_platform_name(PJRT_Client_PlatformName_Args& args) {
  if (!PJRT_Client::check(args.client, "PJRT_Client_PlatformName")) {
    return not_a_client();
  }
  const std::string_view name = setting(FAKE_PLUGIN_PLATFORM) == 1 ? "cpu" : kPlatformName;
  args.platform_name = name.data();
  args.platform_name_size = name.size();
  return nullptr;
}

PJRT_Error* client_platform_version(PJRT_Client_PlatformVersion_Args& args) {
  if (!PJRT_Client::check(args.client, "PJRT_Client_PlatformVersion")) {
    return not_a_client();
  }
  args.platform_version = kPlatformVersion.data();
  args.platform_version_size = kPlatformVersion.size();
  return nullptr;
}

PJRT_Error* client_addressable_devices(PJRT_Client_AddressableDevices_Args& args) {
  if (!PJRT_Client::check(args.client, "PJRT_Client_AddressableDevices")) {
    return not_a_client();
  }
  args.addressable_devices = args.client->device_list.data();
  args.num_addressable_devices = args.client->num_devices;
  return nullptr;
}

}  // namespace implementation
}  // namespace fake_plugin
