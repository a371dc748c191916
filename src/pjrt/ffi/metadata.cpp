// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/metadata.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace cyxla::pjrt {
namespace {

// A handler gets no argument that identifies its probe, but the plugin calls it on the thread that
// registers it. A thread finds its own id here only while it has a probe, so `current_probe` needs
// no lock. (A thread_local would take static TLS, see runtime/thread_state.h.)
std::atomic<std::thread::id> probing_thread;
FfiProbe* current_probe = nullptr;

}  // namespace

std::string to_string(FfiVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

ffi::MetadataExtension* metadata_extension(const ffi::CallFrame& frame) noexcept {
  ffi::InternalExtension* extension = frame.extension_start;
  return extension != nullptr && extension->type == ffi::kMetadataExtension
             ? reinterpret_cast<ffi::MetadataExtension*>(extension)
             : nullptr;
}

void answer_metadata(ffi::Metadata& metadata, FfiVersion version) noexcept {
  metadata.api_version.major_version = version.major;
  metadata.api_version.minor_version = version.minor;
  metadata.traits = 0;
}

ffi::Error* make_ffi_error(const ffi::CallFrame& frame, int code, const char* message) noexcept {
  ffi::ErrorCreateArgs args = {};
  args.struct_size = ffi::kErrorCreateArgsSize;
  args.message = message;
  args.code = code;
  // The plugin copies the text.
  // cppcheck-suppress returnDanglingLifetime
  return frame.api->error_create(&args);
}

FfiProbe::FfiProbe() noexcept {
  current_probe = this;
  probing_thread.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

FfiProbe::~FfiProbe() { probing_thread.store({}, std::memory_order_relaxed); }

ffi::Error* probe_handler(ffi::CallFrame* frame) noexcept {
  const ffi::MetadataExtension* extension = metadata_extension(*frame);
  if (extension == nullptr) {
    return make_ffi_error(*frame, ffi::kFailedPrecondition,
                          "this target is cyxla's probe for the FFI version; it computes nothing");
  }
  const FfiVersion version = {frame->api->version.major_version, frame->api->version.minor_version};
  answer_metadata(*extension->metadata, version);
  FfiHost host;
  if (probing_thread.load(std::memory_order_relaxed) == std::this_thread::get_id() &&
      frame->struct_size <= sizeof host.frame) {
    host.api = frame->api;
    host.version = version;
    std::memcpy(host.frame.data(), frame, frame->struct_size);
    current_probe->host = host;
  }
  return nullptr;
}

ffi::Error* ask_for_metadata(ffi::Handler handler, ffi::CallFrame& frame, ffi::Metadata& metadata) {
  metadata = {};
  metadata.struct_size = ffi::kMetadataSize;
  metadata.api_version.struct_size = sizeof(ffi::ApiVersion);
  ffi::MetadataExtension extension = {
      {sizeof(ffi::MetadataExtension), ffi::kMetadataExtension, nullptr}, &metadata};
  ffi::InternalExtension* const before = frame.extension_start;
  frame.extension_start = &extension.base;
  ffi::Error* const error = handler(&frame);
  frame.extension_start = before;
  return error;
}

FfiVersion handler_version(const FfiHost& host, const std::string& target, ffi::Handler handler) {
  auto frame = host.frame;
  ffi::Metadata metadata;
  ffi::Error* const error =
      ask_for_metadata(handler, *reinterpret_cast<ffi::CallFrame*>(frame.data()), metadata);
  if (error != nullptr) {
    throw Error(ErrorCode::kUnsupported, "",
                "the handler of the custom-call target " + target +
                    " does not report which version of XLA's FFI it was built for: " +
                    take_message(host, error));
  }
  return {metadata.api_version.major_version, metadata.api_version.minor_version};
}

std::string take_message(const FfiHost& host, ffi::Error* error) {
  ffi::ErrorDetailsArgs details = {};
  details.struct_size = ffi::kErrorDetailsArgsSize;
  details.error = error;
  host.api->error_details(&details);
  std::string message = details.message == nullptr ? "no message" : details.message;
  ffi::ErrorDestroyArgs destroy = {sizeof destroy, nullptr, error};
  host.api->error_destroy(&destroy);
  return message;
}

}  // namespace cyxla::pjrt
