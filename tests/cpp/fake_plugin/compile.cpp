// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "error.h"
#include "executable.h"
#include "ledger.h"

namespace fake_plugin {

PJRT_Error* load(PJRT_Client* client, std::string_view code, bool is_deserialized,
                 PJRT_LoadedExecutable*& executable) {
  Program program;
  if (const std::string wrong = program.parse(code); !wrong.empty()) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "%s", wrong.c_str());
  }
  executable = PJRT_LoadedExecutable::make(FAKE_PLUGIN_LOADED_EXECUTABLE);
  executable->client = client;
  executable->code = code;
  executable->is_deserialized = is_deserialized;
  executable->program = std::move(program);
  executable->running = 0;
  client->children.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

namespace implementation {

PJRT_Error* client_compile(PJRT_Client_Compile_Args& args) {
  if (!PJRT_Client::check(args.client, "PJRT_Client_Compile")) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a client");
  }
  if (args.program == nullptr || args.program->struct_size != PJRT_Program_STRUCT_SIZE) {
    violation("PJRT_Client_Compile", "wrong PJRT_Program struct_size");
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a program");
  }
  const std::string_view code(args.program->code, args.program->code_size);
  const std::string_view format(args.program->format, args.program->format_size);
  record_text(FAKE_PLUGIN_PROGRAM_CODE, code);
  record_text(FAKE_PLUGIN_PROGRAM_FORMAT, format);
  record_text(FAKE_PLUGIN_COMPILE_OPTIONS, {args.compile_options, args.compile_options_size});
  if (format != "fake") {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "unknown program format '%s'",
                      std::string(format).c_str());
  }
  return load(args.client, code, false, args.executable);
}

PJRT_Error* loaded_executable_destroy(PJRT_LoadedExecutable_Destroy_Args& args) {
  PJRT_LoadedExecutable* executable = args.executable;
  if (executable == nullptr ||
      !PJRT_LoadedExecutable::check(executable, "PJRT_LoadedExecutable_Destroy")) {
    return nullptr;
  }
  if (executable->running.load(std::memory_order_relaxed) != 0) {
    violation("PJRT_LoadedExecutable_Destroy", "the program is being executed");
    while (executable->running.load(std::memory_order_relaxed) != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  executable->program = {};
  executable->client->children.fetch_sub(1, std::memory_order_relaxed);
  executable->retire();
  return nullptr;
}

PJRT_Error* loaded_executable_get_executable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  if (!PJRT_LoadedExecutable::check(args.loaded_executable,
                                    "PJRT_LoadedExecutable_GetExecutable")) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a loaded executable");
  }
  PJRT_Executable* executable = PJRT_Executable::make(FAKE_PLUGIN_EXECUTABLE);
  executable->program = args.loaded_executable->program;
  executable->code = args.loaded_executable->code;
  executable->is_deserialized = args.loaded_executable->is_deserialized;
  args.executable = executable;
  return nullptr;
}

}  // namespace implementation
}  // namespace fake_plugin
