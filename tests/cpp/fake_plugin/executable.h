// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"
#include "object.h"
#include "program.h"

// Owned by the caller until LoadedExecutable_Destroy, which must not be called before its last
// execution has ended.
struct PJRT_LoadedExecutable : fake_plugin::Object<PJRT_LoadedExecutable> {
  PJRT_Client* client;
  std::string code;
  bool is_deserialized;
  fake_plugin::Program program;
  std::atomic<int> running = 0;
};

// Describes a loaded executable from a copy of its program. Owned by the caller until
// Executable_Destroy; may outlive the loaded executable.
struct PJRT_Executable : fake_plugin::Object<PJRT_Executable> {
  std::string code;
  bool is_deserialized;
  fake_plugin::Program program;
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<std::int64_t> output_dimensions;
  std::vector<std::size_t> output_ranks;
  PJRT_NamedValue property;
};

namespace fake_plugin {

// Makes a loaded executable from a program's code, or returns what is wrong with the code.
PJRT_Error* load(PJRT_Client* client, std::string_view code, bool is_deserialized,
                 PJRT_LoadedExecutable*& executable);

// Returns the number of executions in progress.
std::int64_t running() noexcept;

}  // namespace fake_plugin
