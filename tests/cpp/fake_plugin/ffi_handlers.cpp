// SPDX-License-Identifier: Apache-2.0
#include "ffi_handlers.h"

#include <cstddef>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "ledger.h"
#include "settings.h"

namespace fake_plugin {

struct FfiError {
  std::string message;
};

namespace {

// The published ABI of XLA's FFI.
struct Extension {
  std::size_t struct_size;
  int type;
  Extension* next;
};

struct Version {
  std::size_t struct_size;
  Extension* extension_start;
  int major_version;
  int minor_version;
};

struct ErrorCreateArgs {
  std::size_t struct_size;
  Extension* extension_start;
  const char* message;
  int code;
};

struct ErrorMessageArgs {
  std::size_t struct_size;
  Extension* extension_start;
  FfiError* error;
  const char* message;
};

struct ErrorDestroyArgs {
  std::size_t struct_size;
  Extension* extension_start;
  FfiError* error;
};

struct Span {
  const char* data;
  std::size_t size;
};

// The layout before minor version 4, without the stage `record`.
struct RegisterArgs {
  std::size_t struct_size;
  Extension* extension_start;
  Span name;
  Span platform;
  void* stages[3];
  void* execute;
  std::uint32_t traits;
};
constexpr std::size_t kOldRegisterArgsSize = 84;
constexpr std::size_t kRegisterArgsSize = 92;
constexpr int kFirstMinorWithRecord = 4;
constexpr int kFirstMinorWithState = 5;  // in the metadata

struct Api {
  std::size_t struct_size;
  Extension* extension_start;
  Version version;
  void* internal_api;
  FfiError* (*error_create)(ErrorCreateArgs*);
  void (*error_message)(ErrorMessageArgs*);
  void (*error_destroy)(ErrorDestroyArgs*);
  FfiError* (*handler_register)(RegisterArgs*);
};

struct CallFrame {
  std::size_t struct_size;
  Extension* extension_start;
  const Api* api;
  void* context;
  int stage;
  std::size_t arguments[5];
  std::size_t results[5];
  std::size_t attributes[6];
};
static_assert(sizeof(CallFrame) == 168);
constexpr int kExecuteStage = 3;

// Ends where an old plugin's metadata ends, so that tests see what newer handlers write behind it.
struct Metadata {
  std::size_t struct_size;
  Version api_version;
  std::uint32_t traits;
  std::uint32_t padding;
  std::uint64_t guard;
};
constexpr std::size_t kMetadataSize = 36;
constexpr std::uint64_t kGuard = 0x6775617264656421;

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

using Handler = FfiError* (*)(CallFrame*);

struct Handlers {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, Handler> by_name;
};

Handlers& handlers() {
  static Handlers& result = *new Handlers;
  return result;
}

FfiError* make_ffi_error(std::string message) {
  count_live(FAKE_PLUGIN_ERROR, 1);
  return new FfiError{std::move(message)};
}

FfiError* error_create(ErrorCreateArgs* args) { return make_ffi_error(args->message); }

void error_message(ErrorMessageArgs* args) { args->message = args->error->message.c_str(); }

void error_destroy(ErrorDestroyArgs* args) { destroy(args->error); }

FfiError* handler_register(RegisterArgs* args) {
  const bool is_old = setting(FAKE_PLUGIN_FFI_MINOR) < kFirstMinorWithRecord;
  if (args->struct_size < (is_old ? kOldRegisterArgsSize : kRegisterArgsSize)) {
    violation("XLA_FFI_Handler_Register", "struct_size is too small");
  }
  if (is_old && args->traits != 0) {
    violation("XLA_FFI_Handler_Register", "unknown traits");
  }
  return keep_handler(std::string(args->name.data, args->name.size),
                      std::string(args->platform.data, args->platform.size), args->execute);
}

const Api& table() {
  static Api api;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto major = static_cast<int>(setting(FAKE_PLUGIN_FFI_MAJOR));
  const auto minor = static_cast<int>(setting(FAKE_PLUGIN_FFI_MINOR));
  if (api.struct_size == 0 || api.version.major_version != major ||
      api.version.minor_version != minor) {
    api = {sizeof api,    nullptr,         {sizeof(Version), nullptr, major, minor},
           nullptr,       error_create,    error_message,
           error_destroy, handler_register};
  }
  return api;
}

// Returns null, or why a handler of its version cannot be called.
FfiError* check_version(const std::string& target, Handler handler) {
  Metadata metadata = {};
  metadata.struct_size = kMetadataSize;
  metadata.api_version.struct_size = sizeof(Version);
  metadata.guard = kGuard;
  MetadataExtension extension = {{sizeof extension, 1, nullptr}, &metadata};
  CallFrame frame = {};
  frame.struct_size = sizeof frame;
  frame.extension_start = &extension.base;
  frame.api = &table();
  if (FfiError* error = handler(&frame); error != nullptr) {
    return error;
  }
  if (metadata.guard != kGuard && frame.api->version.minor_version < kFirstMinorWithState) {
    violation("a handler", "wrote behind the metadata that it was asked for");
  }
  if (frame.extension_start != &extension.base) {
    violation("a handler", "changed the call frame");
  }
  const Version& version = metadata.api_version;
  const Version& own = frame.api->version;
  if (version.major_version == own.major_version && version.minor_version <= own.minor_version) {
    return nullptr;
  }
  char message[256];
  std::snprintf(message, sizeof message,
                "registration for %s failed because the handler's API version (%d.%d) is "
                "incompatible with the framework's (%d.%d)",
                target.c_str(), version.major_version, version.minor_version, own.major_version,
                own.minor_version);
  return make_ffi_error(message);
}

}  // namespace

FfiError* keep_handler(const std::string& target, const std::string& platform, void* address) {
  const auto handler = reinterpret_cast<Handler>(address);
  if (setting(FAKE_PLUGIN_FFI_NO_METADATA) == 0) {
    if (FfiError* error = check_version(target, handler); error != nullptr) {
      return error;
    }
  }
  {
    const std::lock_guard lock(handlers().mutex);
    const auto [at, is_new] = handlers().by_name.try_emplace({platform, target}, handler);
    if (target == "built_in" || at->second != handler) {
      return make_ffi_error("Duplicate FFI handler registration for " + target);
    }
    if (!is_new) {
      return nullptr;
    }
  }
  char text[32];
  std::snprintf(text, sizeof text, " %p\n", address);
  append_record(FAKE_PLUGIN_FFI_HANDLERS, target + " " + platform + text);
  return nullptr;
}

void destroy(FfiError* error) noexcept {
  if (error != nullptr) {
    count_live(FAKE_PLUGIN_ERROR, -1);
    delete error;
  }
}

std::int32_t call_handler(const std::string& target, const std::string& platform, void* context) {
  Handler handler = nullptr;
  {
    const std::lock_guard lock(handlers().mutex);
    const auto found = handlers().by_name.find({platform, target});
    if (found == handlers().by_name.end()) {
      return 0;
    }
    handler = found->second;
  }
  CallFrame frame = {};
  frame.struct_size = sizeof frame;
  frame.api = &table();
  frame.context = context;
  frame.stage = kExecuteStage;
  FfiError* const error = handler(&frame);
  destroy(error);
  return error == nullptr ? 1 : -1;
}

void forget_handlers() {
  const std::lock_guard lock(handlers().mutex);
  handlers().by_name.clear();
}

}  // namespace fake_plugin
