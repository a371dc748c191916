// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/adapter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"

namespace cyxla::pjrt {
namespace {

struct Adapter {
  std::atomic<ffi::Handler> handler{nullptr};
  std::atomic<int> minor{0};
};

std::mutex adapters_mutex;  // guards taking an adapter
std::size_t num_adapters = 0;
std::array<Adapter, kNumFfiAdapters> adapters;

// Uses its own metadata struct: a newer handler may write more than an older plugin allocates.
ffi::Error* answer_for_older(ffi::Handler handler, int minor, ffi::CallFrame& frame,
                             ffi::Metadata& asked) {
  ffi::Metadata metadata;
  if (ffi::Error* const error = ask_for_metadata(handler, frame, metadata)) {
    return error;
  }
  asked.api_version.major_version = metadata.api_version.major_version;
  asked.api_version.minor_version = std::min(metadata.api_version.minor_version, minor);
  asked.traits = metadata.traits;
  return nullptr;
}

template <std::size_t kIndex>
ffi::Error* forward(ffi::CallFrame* frame) {
  const Adapter& adapter = adapters[kIndex];
  const ffi::Handler handler = adapter.handler.load(std::memory_order_acquire);
  if (const ffi::MetadataExtension* extension = metadata_extension(*frame)) [[unlikely]] {
    return answer_for_older(handler, adapter.minor.load(std::memory_order_relaxed), *frame,
                            *extension->metadata);
  }
  return handler(frame);
}

template <std::size_t... kIndices>
constexpr std::array<ffi::Handler, kNumFfiAdapters> make_functions(
    std::index_sequence<kIndices...> /*unused*/) {
  return {forward<kIndices>...};
}

constexpr auto kFunctions = make_functions(std::make_index_sequence<kNumFfiAdapters>());

}  // namespace

ffi::Handler adapt_ffi_handler(ffi::Handler handler, int minor) {
  const std::lock_guard lock(adapters_mutex);
  for (std::size_t i = 0; i < num_adapters; ++i) {
    if (adapters[i].handler == handler && adapters[i].minor == minor) {
      return kFunctions[i];
    }
  }
  if (num_adapters == kNumFfiAdapters) {
    throw Error(ErrorCode::kUnsupported, "",
                "all " + std::to_string(kNumFfiAdapters) +
                    " adapters for handlers of a newer XLA FFI are in use; build handlers with"
                    " headers of minor version " +
                    std::to_string(minor) + ", which do not need one, or use a newer plugin");
  }
  Adapter& adapter = adapters[num_adapters];
  adapter.minor.store(minor, std::memory_order_relaxed);
  adapter.handler.store(handler, std::memory_order_release);
  return kFunctions[num_adapters++];
}

}  // namespace cyxla::pjrt
