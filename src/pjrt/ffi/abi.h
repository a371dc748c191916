// SPDX-License-Identifier: Apache-2.0
// The parts of XLA's FFI that cyxla uses, declared from its published ABI as of minor version 5,
// because the package with the PJRT header does not ship an FFI header. Everything here is the same
// from minor version 2 on; where a struct grew, a comment says how one layout serves all versions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla::pjrt::ffi {

struct Error;

struct InternalExtension {
  std::size_t struct_size;
  int type;
  InternalExtension* next;
};
inline constexpr int kMetadataExtension = 1;

struct ApiVersion {
  std::size_t struct_size;
  InternalExtension* extension_start;
  int major_version;
  int minor_version;
};

struct ErrorCreateArgs {
  std::size_t struct_size;
  InternalExtension* extension_start;
  const char* message;
  int code;
};
inline constexpr std::size_t kErrorCreateArgsSize = 28;
inline constexpr int kFailedPrecondition = 9;
inline constexpr int kInternalError = 13;

// `code` is new in minor version 4.
struct ErrorDetailsArgs {
  std::size_t struct_size;
  InternalExtension* extension_start;
  Error* error;
  const char* message;
  int code;
};
inline constexpr std::size_t kErrorDetailsArgsSize = 36;

struct ErrorDestroyArgs {
  std::size_t struct_size;
  InternalExtension* extension_start;
  Error* error;
};

struct ByteSpan {
  const char* data;
  std::size_t size;
};

struct CallFrame;
using Handler = Error* (*)(CallFrame* frame);

// `record` is new in minor version 4. Older versions have `traits` at its offset, so both stay
// zero.
struct HandlerRegisterArgs {
  std::size_t struct_size;
  InternalExtension* extension_start;
  ByteSpan name;
  ByteSpan platform;
  Handler instantiate;
  Handler prepare;
  Handler initialize;
  Handler execute;
  Handler record;
  std::uint32_t traits;
};
inline constexpr std::size_t kHandlerRegisterArgsSize = 92;

// The functions up to the last one that cyxla calls; the real table is longer.
struct Api {
  std::size_t struct_size;
  InternalExtension* extension_start;
  ApiVersion version;
  const void* internal_api;
  Error* (*error_create)(ErrorCreateArgs* args);
  void (*error_details)(ErrorDetailsArgs* args);
  void (*error_destroy)(ErrorDestroyArgs* args);
  Error* (*handler_register)(HandlerRegisterArgs* args);
};

// The beginning of a handler's call frame; arguments, results and attributes follow.
struct CallFrame {
  std::size_t struct_size;
  InternalExtension* extension_start;
  const Api* api;
  void* context;
  int stage;
};

// Plugins do not count `state_type_id` in the size they give (36), yet handlers write it.
struct Metadata {
  std::size_t struct_size;
  ApiVersion api_version;
  std::uint32_t traits;
  std::int64_t state_type_id;
};
inline constexpr std::size_t kMetadataSize = 36;

// A call with this extension asks a handler for its metadata instead of executing it.
struct MetadataExtension {
  InternalExtension base;
  Metadata* metadata;
};

static_assert(offsetof(InternalExtension, next) == 16);
static_assert(offsetof(ApiVersion, minor_version) == 20);
static_assert(offsetof(ErrorCreateArgs, code) + sizeof(int) == kErrorCreateArgsSize);
static_assert(offsetof(ErrorDetailsArgs, code) + sizeof(int) == kErrorDetailsArgsSize);
static_assert(offsetof(HandlerRegisterArgs, traits) + sizeof(std::uint32_t) ==
              kHandlerRegisterArgsSize);
static_assert(offsetof(HandlerRegisterArgs, execute) == 72);
static_assert(offsetof(Api, error_create) == 48);
static_assert(offsetof(Api, handler_register) == 72);
static_assert(offsetof(CallFrame, stage) == 32);
static_assert(offsetof(Metadata, traits) + sizeof(std::uint32_t) == kMetadataSize);
static_assert(offsetof(MetadataExtension, metadata) == 24);

}  // namespace cyxla::pjrt::ffi
